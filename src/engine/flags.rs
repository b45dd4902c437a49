//! Every flag of the engine has a field of the instance, or a reason why not.

use clap::{Arg, ArgAction, CommandFactory as _, FromArgMatches as _};
use kube::CustomResourceExt as _;
use portal_crds::PortalInstance;
use portal_operator::{
    children::{
        children,
        flags::{FLAGS, Origin},
    },
    instance::{Instance, OperatorSettings},
    permissions::Permissions,
};
use serde_json::{Value, json};

use super::{Arguments, settings};
use crate::command_line::{Command, CommandLine};

fn engine() -> clap::Command {
    let mut command = CommandLine::command();
    command.build();
    command.find_subcommand("engine").unwrap().clone()
}

fn flags(command: &clap::Command) -> impl Iterator<Item = &Arg> {
    command.get_arguments().filter(|argument| !["help", "version"].contains(&argument.get_id().as_str()))
}

#[test]
fn the_operator_knows_every_flag_and_no_other_in_the_order_of_the_help() {
    let command = engine();
    let names: Vec<&str> = flags(&command).filter_map(Arg::get_long).collect();
    let known: Vec<&str> = FLAGS.iter().map(|flag| flag.name).collect();
    assert_eq!(known, names);
}

#[test]
fn the_operator_knows_what_the_engine_takes_if_a_flag_is_not_given() {
    let command = engine();
    for (argument, flag) in flags(&command).zip(FLAGS) {
        let default = argument.get_default_values().first().and_then(|value| value.to_str());
        let is_switch = matches!(argument.get_action(), ArgAction::SetTrue);
        assert_eq!(flag.default, default.filter(|_| !is_switch), "--{}", flag.name);
    }
}

#[test]
fn every_field_that_a_flag_comes_from_is_one_of_the_instance() {
    let definition = serde_json::to_value(PortalInstance::crd()).unwrap();
    let spec = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
    for flag in FLAGS {
        match flag.origin {
            Origin::Field(path) => {
                let pointer = format!("/properties/{}", path.replace('.', "/properties/"));
                assert!(spec.pointer(&pointer).is_some(), "--{}: {path}", flag.name);
            }
            Origin::Fixed(reason) => assert!(reason.len() > 10, "--{}", flag.name),
        }
    }
}

/// The arguments of one of an instance's Deployments, as the engine reads them.
fn told(instance: &Value, place: usize) -> Arguments {
    let operator = OperatorSettings {
        namespace: "portal-operator".to_owned(),
        account: "portal-operator".to_owned(),
        image: "portal:v1".to_owned(),
        version: "0.1.0".to_owned(),
    };
    let children = children(&Instance::read(instance).unwrap(), &Permissions::default(), &operator);
    let arguments = &children.deployments[place].value["spec"]["template"]["spec"]["containers"][0]["args"];
    let line = arguments.as_array().unwrap().iter().map(|argument| argument.as_str().unwrap().replace("$$", "$"));
    let line = ["portal".to_owned()].into_iter().chain(line);
    let matches = CommandLine::command().try_get_matches_from(line).unwrap();
    match CommandLine::from_arg_matches(&matches).unwrap().command {
        Command::Engine(arguments) => *arguments,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_engine_understands_what_pods_are_told() {
    let metadata = json!({ "name": "default", "uid": "uid" });
    let default =
        json!({ "apiVersion": "portal.io/v1alpha1", "kind": "PortalInstance", "metadata": metadata, "spec": {} });
    let told_default = settings(&told(&default, 0)).unwrap();
    assert_eq!((&*told_default.instance, &*told_default.namespace), ("default", "portal-system"));
    assert!(told_default.rules_from_cluster && told_default.admission.is_some() && told_default.peers.is_some());

    let every: Value =
        serde_json::from_str(include_str!("../../operator/src/children/tests/every-field.json")).unwrap();
    let of_audit = settings(&told(&every, 1)).unwrap();
    let settings = settings(&told(&every, 0)).unwrap();
    assert_eq!((&*settings.instance, &*settings.namespace), ("every", "policy"));
    assert_eq!(settings.rule_selector.to_string(), "team=payments,tier in (a,b),!draft");
    assert_eq!(settings.watched_kinds, ["Pod", "Deployment.apps"]);
    let admission = settings.admission.unwrap();
    assert_eq!(admission.listen.to_string(), "[::]:9443");
    assert_eq!(admission.judge.deadline.as_millis(), 6000);
    assert_eq!(admission.files.clients.unwrap().name, "$(API)-server");
    let accounts =
        ["system:serviceaccount:policy:portal-every-admission", "system:serviceaccount:policy:portal-every-audit"];
    assert_eq!(admission.peer_accounts, accounts);
    // Each layer has pods of its own.
    assert!(settings.audit.is_none() && of_audit.admission.is_none());
    let audit = of_audit.audit.unwrap();
    assert_eq!((audit.workers, audit.resync.as_secs(), audit.dependencies), (8, 3600, 1000));
    assert_eq!((audit.allowance.times, audit.allowance.window.as_secs()), (1, 60));
    assert_eq!(of_audit.reports, Some(portal_engine::sinks::report::Api::OpenReports));
    let alerts = of_audit.alerts.unwrap();
    assert_eq!((alerts.addresses.len(), alerts.credentials.is_some()), (1, true));
}
