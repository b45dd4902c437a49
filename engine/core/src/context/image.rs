//! What an image reference consists of.

/// The parts of a reference such as `ghcr.io/acme/api:1.2@sha256:…`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Image<'a> {
    /// The registry. It is Docker's when the reference names none.
    pub(crate) registry: &'a str,
    /// The path of the repository, without the registry.
    pub(crate) name: &'a str,
    /// The tag. `latest` if there is neither a tag nor a digest.
    pub(crate) tag: Option<&'a str>,
    /// The digest of the algorithm sha256, in hex.
    pub(crate) sha256: Option<&'a str>,
}

const DEFAULT_REGISTRY: &str = "docker.io";
const DEFAULT_TAG: &str = "latest";

impl<'a> Image<'a> {
    /// Takes a reference apart. Any text has parts, so that a rule can judge what the runtime would refuse.
    pub(crate) fn parse(reference: &'a str) -> Image<'a> {
        let (rest, digest) = match reference.split_once('@') {
            Some((rest, digest)) => (rest, Some(digest)),
            None => (reference, None),
        };
        let (registry, rest) = match rest.split_once('/') {
            // As Docker tells a registry from the first part of a path: a dot, a port, or localhost. An upper case letter
            // cannot be in a path.
            Some((first, rest))
                if first.contains(['.', ':'])
                    || first == "localhost"
                    || first.contains(|character: char| character.is_ascii_uppercase()) =>
            {
                (first, rest)
            }
            _ => (DEFAULT_REGISTRY, rest),
        };
        // A colon behind the last slash begins a tag; one before it was a port.
        let name_start = rest.rfind('/').map_or(0, |slash| slash + 1);
        let (name, tag) = match rest[name_start..].split_once(':') {
            Some((last, tag)) => (&rest[..name_start + last.len()], Some(tag)),
            None => (rest, digest.is_none().then_some(DEFAULT_TAG)),
        };
        Image { registry, name, tag, sha256: digest.and_then(|digest| digest.strip_prefix("sha256:")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(reference: &str, registry: &str, name: &str, tag: Option<&str>, sha256: Option<&str>) {
        assert_eq!(Image::parse(reference), Image { registry, name, tag, sha256 });
    }

    #[test]
    fn parts_are_found() {
        check("nginx", "docker.io", "nginx", Some("latest"), None);
        check("nginx:1.27", "docker.io", "nginx", Some("1.27"), None);
        check("library/nginx", "docker.io", "library/nginx", Some("latest"), None);
        check("ghcr.io/acme/api:1.2", "ghcr.io", "acme/api", Some("1.2"), None);
        check("docker.io/library/nginx:1", "docker.io", "library/nginx", Some("1"), None);
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
    }

    #[test]
    fn odd_references_have_parts_too() {
        check("", "docker.io", "", Some("latest"), None);
        check("Registry/api", "Registry", "api", Some("latest"), None);
        check("a/b:c/d", "docker.io", "a/b:c/d", Some("latest"), None);
        check("nginx:", "docker.io", "nginx", Some(""), None);
        check("@", "docker.io", "", None, None);
        check("/nginx", "docker.io", "/nginx", Some("latest"), None);
    }
}
