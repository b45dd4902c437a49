//! Words for libFuzzer, which would take long to find them by itself.

const EXPRESSION: &str = r#"not in and or matches contains startsWith endsWith let if else true false nil
    && || ?? ?. ?: .. ** == != <= >= :: |map( # #acc #index $env ; 0x 0b 0o 1e3 b" /* // `
    container object cluster double( list( cluster.any( byRef( ns: selector: image privileged user args ports labels env weight .tag .name
    9223372036854775807 1..3 {a:1} [1:2] "1.27" "v1.2.3-rc.1+b" ">=1.2,<2||3.x" ^ ~ .x "10.0.0.0/8" "::ffff:10.0.0.1" "fd00::/8" /32
    "prod-*" "a:\n-" "1Gi""#;

const JSON: &str =
    r#"true false null {"a": [[ \u0000 \ud83d \ude00 1e308 -0 0.1 9223372036854775807 18446744073709551616 "a" "b""#;

const YAML: &str = r#"--- ... << !!int !!float !!str !!bool !!null !!binary &a *a |- |+ >- >2 ~ .inf .nan yes off 0o7 0x1f 1_000 %YAML
    2001-01-01T00:00:00Z 1:30 ? : - [ ] { } , # \x41 \u263a \U0001F600 \_ \N"#;

const RULES: &str = r#"apiVersion: portal.io/v1alpha1 kind: PortalClusterRule PortalRule metadata: spec: name: match: gvk: group:
    version: operations: CREATE UPDATE DELETE CONNECT subresources: exec namespaces: include: exclude: namespaceSelector:
    labelSelector: matchLabels: matchExpressions: key: operator: NotIn DoesNotExist values: names: podControllers: rule: message:
    {{ }} mode: admission audit enforcementAction: warn severity: alert: actions: type: label evict annotate patch-networkpolicy
    revoke-sa-token rateLimit: 5/min exceptions: reason: until: 2001-01-01 enabled: Pod Deployment Node Secret apps
    cluster.pods.list( cluster.nodes.byName( cluster.any( .byRef( consistentCluster selects( metadata.namespace now() securityContext request.userInfo
    image( x509( certificates( .notAfter .names .issuer .registry semver( isSemver( cidr( isIP( glob( fromYAML( "1.27" "10.0.0.0/8""#;

/// The dictionary of a target, in libFuzzer's form.
pub fn of(target: &str) -> String {
    let mut words: Vec<String> = match target {
        "document_json" => JSON.split_whitespace().map(str::to_owned).collect(),
        "document_yaml" => YAML.split_whitespace().map(str::to_owned).collect(),
        "rules" => RULES.split_whitespace().chain(YAML.split_whitespace()).map(str::to_owned).collect(),
        _ => EXPRESSION.split_whitespace().map(str::to_owned).chain(function_names()).collect(),
    };
    if target == "expression_evaluate" {
        words.push("\0{\"a\":1}".to_owned());
    }
    words.iter().map(|word| format!("\"{}\"\n", hexadecimal(word))).collect()
}

/// The functions of the language with their bracket, and the methods with their dot.
fn function_names() -> Vec<String> {
    let functions = portal_expr::functions();
    functions.iter().filter_map(|function| function.signature.split('(').next()).map(method_or_function).collect()
}

fn method_or_function(name: &str) -> String {
    match name.split_once('.') {
        Some((_, method)) => format!(".{method}("),
        None => format!("{name}("),
    }
}

/// Every byte as an escape, which needs no care for quotes.
fn hexadecimal(word: &str) -> String {
    word.bytes().map(|byte| format!("\\x{byte:02X}")).collect()
}
