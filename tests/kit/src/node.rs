//! The machine below a *full* cluster: namespaces of its own, a network without a way out, cgroups, and their removal.
//!
//! The whole cluster runs in private network, mount and process namespaces. When its first process dies, the kernel
//! ends every other one and drops every mount and network device; only files and cgroup folders are left to remove.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, bail};

/// The node's address. It exists only inside the cluster's network namespace.
pub const ADDRESS: &str = "10.77.0.1";

/// Where the cluster's folder is mounted inside its mount namespace: a short path that exists on every machine.
pub const INSIDE: &str = "/mnt";

/// What must be installed, and where it comes from on Debian.
const TOOLS: [(&str, &str); 6] = [
    ("containerd", "containerd"),
    ("runc", "runc"),
    ("/usr/lib/cni/bridge", "containernetworking-plugins"),
    ("ip", "iproute2"),
    ("iptables", "iptables"),
    ("conntrack", "conntrack"),
];

/// Where Debian puts the network plugins.
pub const NETWORK_PLUGINS: &str = "/usr/lib/cni";

/// Says what is missing for a node on this machine, in one sentence with the way out.
pub fn check_machine() -> anyhow::Result<()> {
    let user = fs::metadata("/proc/self").context("could not read /proc/self")?.uid();
    check(user, |tool| find_in_path(tool).is_some())
}

fn check(user: u32, is_installed: impl Fn(&str) -> bool) -> anyhow::Result<()> {
    if user != 0 {
        bail!("size full needs root for its namespaces and containers: run it with sudo, or choose core or control");
    }
    let missing: Vec<&str> =
        TOOLS.iter().filter(|(tool, _)| !is_installed(tool)).map(|(_, package)| *package).collect();
    if !missing.is_empty() {
        bail!("size full needs programs that are not installed: apt-get install {}", missing.join(" "));
    }
    Ok(())
}

/// Prepares the namespaces that this process was started in. Runs inside them, before any component. Returns where the
/// programs are from then on: the cache may lie below a folder that is hidden here.
pub fn enter(state_folder: &Path, programs: &Path) -> anyhow::Result<PathBuf> {
    let text = |path: &Path| path.to_str().map(str::to_owned).context("the path of the cache is not text");
    let programs_here = state_folder.join("programs");
    fs::create_dir_all(&programs_here)?;
    run("mount", &["--bind", &text(programs)?, &text(&programs_here)?])?;
    run("mount", &["--rbind", &text(state_folder)?, INSIDE])?;
    // Components write below these folders, some of them at paths that cannot be configured.
    for (folder, path) in [("var-lib", "/var/lib"), ("var-log", "/var/log"), ("run", "/run")] {
        let private = Path::new(INSIDE).join("node").join(folder);
        fs::create_dir_all(&private)?;
        run("mount", &["--bind", private.to_str().expect("made of text"), path])?;
    }
    run("ip", &["link", "set", "lo", "up"])?;
    // A pair of virtual cables whose both ends stay here carries the node's address; not every kernel has dummy devices.
    run("ip", &["link", "add", "node0", "type", "veth", "peer", "name", "node1"])?;
    run("ip", &["link", "set", "node1", "up"])?;
    run("ip", &["link", "set", "node0", "up"])?;
    run("ip", &["address", "add", &format!("{ADDRESS}/32"), "dev", "node0"])?;
    run("ip", &["route", "add", "default", "dev", "node0"])?;
    fs::write("/proc/sys/net/ipv4/ip_forward", "1").context("could not turn forwarding on")?;
    let bridge_filter = Path::new("/proc/sys/net/bridge/bridge-nf-call-iptables");
    if !bridge_filter.exists() {
        // Built into some kernels, a module elsewhere. Without it a pod cannot reach a Service that leads to its node.
        let _ = Command::new("modprobe").arg("br_netfilter").status();
    }
    fs::write(bridge_filter, "1").context("the kernel lacks br_netfilter, without which Services do not work")?;
    Ok(Path::new(INSIDE).join("programs"))
}

/// Makes the cgroup that all pods of this cluster live below, and returns its name as the kubelet wants it.
pub fn make_cgroups(id: &str) -> anyhow::Result<String> {
    let name = cgroup_name(id);
    for hierarchy in cgroup_hierarchies()? {
        // In version 2 a group has only the controllers that its parent hands down.
        let controllers = fs::read_to_string(hierarchy.join("cgroup.controllers")).unwrap_or_default();
        for controller in controllers.split_whitespace() {
            let _ = fs::write(hierarchy.join("cgroup.subtree_control"), format!("+{controller}"));
        }
        let folder = hierarchy.join(&name);
        fs::create_dir_all(&folder).with_context(|| format!("could not make the cgroup {}", folder.display()))?;
    }
    Ok(format!("/{name}"))
}

/// Removes a cluster's cgroups. Their processes may still be dying, so it tries for a while.
pub fn remove_cgroups(id: &str) -> anyhow::Result<()> {
    let name = cgroup_name(id);
    for hierarchy in cgroup_hierarchies()? {
        let folder = hierarchy.join(&name);
        let mut result = remove_cgroup(&folder);
        for _ in 0..100 {
            if result.is_ok() {
                break;
            }
            std::thread::sleep(Duration::from_millis(100));
            result = remove_cgroup(&folder);
        }
        result.with_context(|| format!("could not remove the cgroup {}", folder.display()))?;
    }
    Ok(())
}

fn cgroup_name(id: &str) -> String {
    format!("portal-{id}")
}

fn remove_cgroup(folder: &Path) -> std::io::Result<()> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            remove_cgroup(&entry.path())?;
        }
    }
    // The files of a cgroup cannot be removed and need not be.
    fs::remove_dir(folder)
}

/// Where cgroups are mounted: one place in version 2, one per controller in version 1.
fn cgroup_hierarchies() -> anyhow::Result<Vec<PathBuf>> {
    let mounts = fs::read_to_string("/proc/mounts").context("could not read /proc/mounts")?;
    Ok(mounts
        .lines()
        .filter_map(|line| {
            let mut fields = line.split(' ').skip(1);
            let path = fields.next()?;
            matches!(fields.next()?, "cgroup" | "cgroup2").then(|| PathBuf::from(path))
        })
        .collect())
}

fn find_in_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|candidate| candidate.exists())
}

fn run(program: &str, arguments: &[&str]) -> anyhow::Result<()> {
    let output = Command::new(program).args(arguments).output().with_context(|| format!("could not run {program}"))?;
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr);
        bail!("`{program} {}` failed: {}", arguments.join(" "), message.trim());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_that_cannot_run_a_node_is_told_why_and_what_to_do() {
        for (user, installed, expected) in [
            (0, true, "fine"),
            (
                1000,
                true,
                "size full needs root for its namespaces and containers: run it with sudo, or choose core or control",
            ),
            (
                0,
                false,
                "size full needs programs that are not installed: apt-get install containerd runc containernetworking-plugins iproute2 iptables conntrack",
            ),
        ] {
            let result = check(user, |_| installed).map_or_else(|error| error.to_string(), |()| "fine".to_owned());
            assert_eq!(result, expected);
        }
    }
}
