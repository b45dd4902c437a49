//! Container images, built without a registry: from a Dockerfile that copies one static program, into an archive.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};
use sha2::{Digest as _, Sha256};

use crate::cache::Cache;

/// An image of one program.
#[derive(Clone, Debug)]
pub struct Image<'path> {
    /// What the archive is called in the cache.
    pub name: &'static str,
    /// The name that pods know it by.
    pub tag: &'static str,
    /// How it is put together.
    pub dockerfile: &'path Path,
    /// The program, and its name in the Dockerfile.
    pub program: &'path Path,
}

/// The image that users get.
pub const PORTAL_IMAGE: &str = "localhost/portal:dev";

/// What the pages call it.
pub const DOCUMENTED_IMAGE: &str = "registry.example/portal:v1";

/// The image of the program that plays servers and clients in tests.
pub const RESPONDER_IMAGE: &str = "localhost/portal-responder:test";

/// The image of the real Alertmanager.
pub const ALERTMANAGER_IMAGE: &str = "localhost/portal-alertmanager:test";

/// The archive of an image. An error tells how to build it.
pub fn find(cache: &Cache, name: &str) -> anyhow::Result<PathBuf> {
    let path = archive(cache, name)?;
    if !path.exists() {
        bail!("the image {name} is not built yet: run `make prepare`");
    }
    Ok(path)
}

/// Brings an archive into a containerd.
pub fn import(socket: &Path, archive: &Path) -> anyhow::Result<()> {
    images(socket, &["import".as_ref(), archive.as_os_str()])
        .with_context(|| format!("{} could not be imported", archive.display()))
}

/// Gives an image of a containerd another name.
pub fn tag(socket: &Path, image: &str, name: &str) -> anyhow::Result<()> {
    images(socket, &["tag".as_ref(), "--force".as_ref(), image.as_ref(), name.as_ref()])
        .with_context(|| format!("{image} could not be called {name}"))
}

fn images(socket: &Path, arguments: &[&OsStr]) -> anyhow::Result<()> {
    let output = Command::new("ctr")
        .arg("--address")
        .arg(socket)
        .args(["--namespace", "k8s.io", "images"])
        .args(arguments)
        .output()
        .context("could not run ctr, which comes with containerd")?;
    if !output.status.success() {
        bail!("{}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}

impl Image<'_> {
    /// Builds the archive, unless what it is made of has not changed since.
    pub fn build(&self, cache: &Cache) -> anyhow::Result<PathBuf> {
        let _lock = cache.lock("images")?;
        let archive = archive(cache, self.name)?;
        let fingerprint_file = archive.with_extension("fingerprint");
        let fingerprint = self.fingerprint()?;
        if archive.exists() && fs::read_to_string(&fingerprint_file).is_ok_and(|known| known == fingerprint) {
            return Ok(archive);
        }
        println!("building the image {}", self.tag);
        let context = cache.folder("images/context")?;
        let file_name = self.program.file_name().context("a program has a name")?;
        fs::copy(self.program, context.join(file_name))?;
        let unfinished = archive.with_extension("unfinished");
        let _ = fs::remove_file(&unfinished);
        let result = if docker_answers() {
            self.build_with_docker(&context, &unfinished)
        } else {
            self.build_with_buildah(cache, &context, &unfinished)
        };
        fs::remove_dir_all(&context)?;
        result?;
        fs::rename(&unfinished, &archive)?;
        fs::write(fingerprint_file, fingerprint)?;
        Ok(archive)
    }

    fn build_with_docker(&self, context: &Path, archive: &Path) -> anyhow::Result<()> {
        run(Command::new("docker").args(["build", "--tag", self.tag, "--file"]).arg(self.dockerfile).arg(context))?;
        run(Command::new("docker").arg("save").arg("--output").arg(archive).arg(self.tag))?;
        // Whoever builds Portal's image wants to have it; the images of tests are nobody's business.
        if self.tag == PORTAL_IMAGE { Ok(()) } else { run(Command::new("docker").args(["rmi", self.tag])) }
    }

    /// Buildah needs no daemon. It runs where all that it would leave on the machine is hidden by empty folders, and where
    /// the cache is at a path that these do not hide.
    fn build_with_buildah(&self, cache: &Cache, context: &Path, archive: &Path) -> anyhow::Result<()> {
        let images = cache.folder("images")?;
        fs::copy(self.dockerfile, context.join("Dockerfile"))?;
        let inside =
            |path: &Path| -> anyhow::Result<PathBuf> { Ok(Path::new("/mnt").join(path.strip_prefix(&images)?)) };
        let script = "mount --bind \"$IMAGES\" /mnt && mount -t tmpfs none /var/lib && mount -t tmpfs none /run && \
                      buildah=\"buildah --root /run/storage --runroot /run/buildah --storage-driver vfs\" && \
                      $buildah bud --isolation chroot --tag \"$TAG\" \"$CONTEXT\" && \
                      $buildah push \"$TAG\" \"oci-archive:$ARCHIVE:$TAG\"";
        run(Command::new("unshare")
            .args(["--mount", "--", "sh", "-c", script])
            .env("IMAGES", &images)
            .env("TAG", self.tag)
            .env("CONTEXT", inside(context)?)
            .env("ARCHIVE", inside(archive)?)
            .env("TMPDIR", "/run"))
    }

    fn fingerprint(&self) -> anyhow::Result<String> {
        let mut hasher = Sha256::new();
        hasher.update(self.tag);
        for path in [self.dockerfile, self.program] {
            hasher.update(fs::read(path).with_context(|| format!("could not read {}", path.display()))?);
        }
        Ok(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
    }
}

fn archive(cache: &Cache, name: &str) -> anyhow::Result<PathBuf> {
    Ok(cache.folder("images")?.join(format!("{name}.tar")))
}

fn docker_answers() -> bool {
    Command::new("docker").arg("info").output().is_ok_and(|output| output.status.success())
}

fn run(command: &mut Command) -> anyhow::Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().with_context(|| format!("could not run {program}"))?;
    if !output.status.success() {
        bail!("an image could not be built:\n{}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}
