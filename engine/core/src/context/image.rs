//! What an image reference consists of.

use std::borrow::Cow;

/// An image reference such as `ghcr.io/acme/api:1.2@sha256:…`. Any text has parts, so that a rule can judge what the runtime
/// would refuse. Each part is looked for when it is asked for: most rules want one.
#[derive(Clone, Copy, Debug)]
pub struct Image<'a>(pub &'a str);

const DEFAULT_REGISTRY: &str = "docker.io";

/// Another name of the default registry. Docker treats both as one.
const DEFAULT_REGISTRY_ALIAS: &str = "index.docker.io";

/// What stands before the images that Docker publishes itself, whether the reference says so or not.
const OFFICIAL: &str = "library/";
const DEFAULT_TAG: &str = "latest";

/// The length of `@sha256:` and 64 digits.
const DIGEST_LENGTH: usize = 72;

impl<'a> Image<'a> {
    /// The registry. It is Docker's when the reference names none. One registry has one name here, however it is written: a
    /// rule that refuses it must not be walked around.
    pub fn registry(self) -> Cow<'a, str> {
        let host = match self.first_part() {
            Some(first) if first.bytes().any(|byte| byte.is_ascii_uppercase()) => {
                Cow::Owned(first.to_ascii_lowercase())
            }
            Some(first) => Cow::Borrowed(first),
            None => Cow::Borrowed(DEFAULT_REGISTRY),
        };
        if host == DEFAULT_REGISTRY_ALIAS { Cow::Borrowed(DEFAULT_REGISTRY) } else { host }
    }

    /// The path of the repository, without the registry. One image has one name here: `library/` is left out where Docker adds it,
    /// which is for images of its own registry alone.
    pub fn name(self) -> &'a str {
        let path = self.path();
        // A colon behind the last slash begins a tag; one before it is none.
        let last = path.rfind('/').map_or(0, |slash| slash + 1);
        let name = path[last..].find(':').map_or(path, |colon| &path[..last + colon]);
        let short = name.strip_prefix(OFFICIAL).filter(|short| !short.is_empty() && !short.contains('/'));
        short.filter(|_| self.is_of_default_registry()).unwrap_or(name)
    }

    /// The tag. `latest` if there is neither a tag nor a digest.
    pub fn tag(self) -> Option<&'a str> {
        // A digest of the usual form is cut off in one step: it is longer than all the rest.
        let digest = self.0.len().checked_sub(DIGEST_LENGTH);
        let digest = digest.filter(|start| self.0.as_bytes()[*start..].starts_with(b"@sha256:"));
        let mut has_digest = digest.is_some();
        let (mut tag, mut end) = (None, digest.unwrap_or(self.0.len()));
        // From the end, because what matters is in the last part: few characters are looked at.
        for (at, byte) in self.0.as_bytes()[..end].iter().enumerate().rev() {
            match byte {
                b':' => tag = Some(&self.0[at + 1..end]),
                // What was taken for a tag is within the digest.
                b'@' => (tag, end, has_digest) = (None, at, true),
                b'/' => break,
                _ => {}
            }
        }
        tag.or((!has_digest).then_some(DEFAULT_TAG))
    }

    /// The digest of the algorithm sha256, in hex.
    pub fn sha256(self) -> Option<&'a str> {
        self.cut().1?.strip_prefix("sha256:")
    }

    fn is_of_default_registry(self) -> bool {
        let is_default = |first: &str| {
            [DEFAULT_REGISTRY, DEFAULT_REGISTRY_ALIAS].iter().any(|name| name.eq_ignore_ascii_case(first))
        };
        self.first_part().is_none_or(is_default)
    }

    /// What is before the digest, and the digest.
    fn cut(self) -> (&'a str, Option<&'a str>) {
        self.0.split_once('@').map_or((self.0, None), |(reference, digest)| (reference, Some(digest)))
    }

    /// What follows the registry, up to the digest.
    fn path(self) -> &'a str {
        let reference = self.cut().0;
        self.first_part().map_or(reference, |first| &reference[first.len() + 1..])
    }

    /// What is before the first slash, if it is a registry. As Docker tells it from the first part of a path: a dot, a port, or
    /// localhost. An upper case letter cannot be in a path.
    fn first_part(self) -> Option<&'a str> {
        let mut is_registry = false;
        for (at, byte) in self.0.bytes().enumerate() {
            match byte {
                b'/' => return Some(&self.0[..at]).filter(|first| is_registry || *first == "localhost"),
                b'@' => return None,
                b'.' | b':' | b'A'..=b'Z' => is_registry = true,
                _ => {}
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(reference: &str, registry: &str, name: &str, tag: Option<&str>, sha256: Option<&str>) {
        let image = Image(reference);
        assert_eq!((&*image.registry(), image.name(), image.tag(), image.sha256()), (registry, name, tag, sha256));
    }

    #[test]
    fn parts_are_found() {
        check("nginx", "docker.io", "nginx", Some("latest"), None);
        check("nginx:1.27", "docker.io", "nginx", Some("1.27"), None);
        check("ghcr.io/acme/api:1.2", "ghcr.io", "acme/api", Some("1.2"), None);
    }

    #[test]
    fn an_image_of_docker_has_one_name() {
        for reference in [
            "nginx:1",
            "library/nginx:1",
            "docker.io/nginx:1",
            "docker.io/library/nginx:1",
            "index.docker.io/library/nginx:1",
            "Docker.IO/library/nginx:1",
        ] {
            check(reference, "docker.io", "nginx", Some("1"), None);
        }
        check("library/nginx@sha256:abc", "docker.io", "nginx", None, Some("abc"));
        check("ghcr.io/library/nginx:1", "ghcr.io", "library/nginx", Some("1"), None);
        check("localhost/library/nginx:1", "localhost", "library/nginx", Some("1"), None);
        check("docker.io/library/a/b:1", "docker.io", "library/a/b", Some("1"), None);
        check("library/:1", "docker.io", "library/", Some("1"), None);
    }

    #[test]
    fn a_registry_has_one_name() {
        check("index.docker.io/acme/nginx:1", "docker.io", "acme/nginx", Some("1"), None);
        check("Index.Docker.IO/a", "docker.io", "a", Some("latest"), None);
        check("GHCR.IO/acme/api", "ghcr.io", "acme/api", Some("latest"), None);
        check("Registry.Acme.IO:5000/api:V1", "registry.acme.io:5000", "api", Some("V1"), None);
    }

    #[test]
    fn a_port_is_no_tag() {
        check("registry:5000/api", "registry:5000", "api", Some("latest"), None);
        check("registry:5000/team/api:v2", "registry:5000", "team/api", Some("v2"), None);
        check("localhost/api", "localhost", "api", Some("latest"), None);
        check("[::1]:5000/api:1", "[::1]:5000", "api", Some("1"), None);
    }

    #[test]
    fn a_digest_stands_for_a_tag() {
        check("nginx@sha256:abc", "docker.io", "nginx", None, Some("abc"));
        check("ghcr.io/a/b:1@sha256:abc", "ghcr.io", "a/b", Some("1"), Some("abc"));
        check("nginx@sha512:abc", "docker.io", "nginx", None, None);
        let digest = "0123456789abcdef".repeat(4);
        check(&format!("nginx@sha256:{digest}"), "docker.io", "nginx", None, Some(&digest));
        check(&format!("r:5000/a/b:1@sha256:{digest}"), "r:5000", "a/b", Some("1"), Some(&digest));
        check(&format!("a/b/c@sha256:{digest}"), "docker.io", "a/b/c", None, Some(&digest));
    }

    #[test]
    fn odd_references_have_parts_too() {
        check("", "docker.io", "", Some("latest"), None);
        check("Registry/api", "registry", "api", Some("latest"), None);
        check("a/b:c/d", "docker.io", "a/b:c/d", Some("latest"), None);
        check("nginx:", "docker.io", "nginx", Some(""), None);
        check("@", "docker.io", "", None, None);
        check("/nginx", "docker.io", "/nginx", Some("latest"), None);
    }
}
