//! The tables of everything that any account of Portal may do, from the tables that manifests are made of.

use std::fmt::Write as _;

use portal_core::permissions::{self, BASE, Base, REPORTS};
use portal_operator::rights::{ACTIONS, CEILING, PEOPLE, People, Place, RIGHTS, Right};

/// The tables, as Markdown.
pub(crate) fn tables() -> anyhow::Result<String> {
    let mut text = String::new();
    text.push_str(
        "\n### The operator, for its own work\n\n| where | resource | verbs | why |\n| --- | --- | --- | --- |\n",
    );
    for right in RIGHTS {
        row(&mut text, place(right.place), right);
    }
    text.push_str(
        "\n### The engine, whatever its rules say\n\nThe operator holds these too, because it hands them on.\n\n\
         | where | resource | verbs | why |\n| --- | --- | --- | --- |\n",
    );
    for base in BASE {
        engine_line(&mut text, base);
    }
    text.push_str(
        "\n### The engine, if it writes reports\n\nWith audit, those of the API group that the instance names in `sinks.policyReport.api`.\n\n\
         | where | resource | verbs | why |\n| --- | --- | --- | --- |\n",
    );
    for base in REPORTS {
        engine_line(&mut text, base);
    }
    text.push_str(
        "\n### The ceiling: what rules may read\n\nThe operator holds `get`, `list` and `watch` on these in the whole cluster. An engine is given those of them that its \
         rules need.\n\n| group | resources |\n| --- | --- |\n",
    );
    for (group, resources) in CEILING {
        let resources: Vec<String> = resources.iter().map(|resource| format!("`{resource}`")).collect();
        let group = if group.is_empty() { "core".to_owned() } else { format!("`{group}`") };
        let _ = writeln!(text, "| {group} | {} |", resources.join(", "));
    }
    text.push_str(
        "\n### Actions\n\nNobody has these before an administrator applies the ClusterRole of an action from `portal generate action-roles`.\n\n\
         | action | resource | verbs | why |\n| --- | --- | --- | --- |\n",
    );
    for (action, rights) in ACTIONS {
        let name = serde_json::to_value(action)?;
        for right in *rights {
            row(&mut text, &format!("`{}`", name.as_str().unwrap_or_default()), right);
        }
    }
    text.push_str(
        "\n### People\n\nThese are added to the roles that Kubernetes has for people, by aggregation.\n\n\
         | who | resource | verbs |\n| --- | --- | --- |\n",
    );
    for (people, resource, verbs) in PEOPLE {
        let who = match people {
            People::View => "`view`, `edit`, `admin`",
            People::Edit => "`edit`, `admin`",
        };
        let _ = writeln!(text, "| {who} | `{resource}.portal.io` | {} |", verbs.join(", "));
    }
    text.push('\n');
    Ok(text)
}

fn engine_line(text: &mut String, base: &Base) {
    let place = match base.place {
        permissions::Place::Cluster => "the whole cluster",
        permissions::Place::OwnObject => "the whole cluster, the object that is named after the instance",
        permissions::Place::OwnNamespace => "the namespace of the engine",
    };
    line(text, place, base.group, base.resource, base.verbs, base.reason);
}

fn place(place: Place) -> &'static str {
    match place {
        Place::Cluster => "the whole cluster",
        Place::OwnNamespace => "the namespace of the operator",
        Place::EngineNamespace => "namespaces that were given to it for engines",
    }
}

fn row(text: &mut String, first: &str, right: &Right) {
    line(text, first, right.group, right.resource, right.verbs, right.reason);
}

fn line(text: &mut String, first: &str, group: &str, resource: &str, verbs: &[&str], why: &str) {
    let (plural, subresource) =
        resource.split_once('/').map_or((resource, None), |(plural, rest)| (plural, Some(rest)));
    let mut name = if group.is_empty() { plural.to_owned() } else { format!("{plural}.{group}") };
    if let Some(subresource) = subresource {
        name = format!("{name}/{subresource}");
    }
    // Writing to a text cannot fail.
    let _ = writeln!(text, "| {first} | `{name}` | {} | {why} |", verbs.join(", "));
}
