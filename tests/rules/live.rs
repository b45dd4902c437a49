//! `--live` that leads to no cluster is told. What a cluster says is in `tests/engine/check.rs`.

use std::process::Command;

use super::{GOOD, RULE, check, folder};

const NOTHING: &str = "0 violations in 0 objects, 0 rules, 1 error";

#[test]
fn the_cluster_is_given_once() {
    let files = folder(&[("rules/a.yaml", RULE.as_bytes()), ("objects/a.yaml", GOOD.as_bytes())]);
    let path = files.path().join("objects");
    let expected = format!(
        "error: --live: both --live and --cluster say what is in the cluster: give --live for what is there now, or --cluster for files that \
         stand for it. What is about to be applied belongs to the files to check\n{NOTHING}"
    );
    check(files.path(), &["--live", "--cluster", path.to_str().unwrap()], 2, &expected);
}

#[test]
fn without_a_kubeconfig_there_is_no_cluster_and_without_the_flag_none_is_asked() {
    let files = folder(&[("rules.yaml", RULE.as_bytes()), ("good.yaml", GOOD.as_bytes()), ("broken", b"clusters: {")]);
    let run = |kubeconfig: &str, more: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_portal"))
            .current_dir(files.path())
            .env("KUBECONFIG", kubeconfig)
            .env_remove("KUBERNETES_SERVICE_HOST")
            .args(["check", "-r", "rules.yaml", "good.yaml"])
            .args(more)
            .output()
            .unwrap();
        let said = if output.stdout.is_empty() { output.stderr } else { output.stdout };
        (output.status.code().unwrap(), String::from_utf8(said).unwrap())
    };
    for kubeconfig in ["missing", "broken"] {
        let (code, text) = run(kubeconfig, &["--live"]);
        assert_eq!(code, 2);
        assert!(text.starts_with("error: --live: no kubeconfig leads to a cluster: "), "{text}");
        assert!(text.ends_with(&format!("; give --kubeconfig FILE or set KUBECONFIG\n{NOTHING}\n")), "{text}");
        assert_eq!(run(kubeconfig, &[]), (0, "0 violations in 1 object, 2 rules\n".to_owned()));
    }
    let (code, text) = run("missing", &["--live", "--kubeconfig", "broken"]);
    assert!(code == 2 && text.starts_with("error: broken: this kubeconfig cannot be used: "), "{text}");
    // A kubeconfig that nobody asks for would be taken for one that was asked.
    let (code, text) = run("missing", &["--kubeconfig", "broken"]);
    assert!(code == 2 && text.contains("--live"), "{text}");
}
