//! The functions of Kubernetes that rules call beside those of the language: what the compiler knows of them, what they give, and what
//! the reference page says.

use std::borrow::Cow;

use portal_expr::{
    ComputedId, Failure, Field, Function, FunctionId, FunctionReference, Machine, Nil, Object, ObjectId, Parameter,
    RULES_ONLY, Schema, Shape, Value,
};

use super::{IMAGE_NAME, IMAGE_REGISTRY, IMAGE_SHA256, IMAGE_TAG, certificate, image::Image};
use crate::selector::Selector;

const SELECTS: FunctionId = FunctionId(2);
const IMAGE: FunctionId = FunctionId(3);
const X509: FunctionId = FunctionId(4);
const CERTIFICATES: FunctionId = FunctionId(5);

/// What the reference page says of a function, with an example in which `pem` is a certificate.
struct About {
    signature: &'static str,
    about: &'static str,
    example: Option<(&'static str, &'static str)>,
}

const TABLE: [About; 7] = [
    About {
        signature: "image(text)",
        about: "an image reference outside of pods, with the fields of `container.image`: `registry`, `name`, `tag`, `sha256`",
        example: Some(("image(\"ghcr.io/acme/web:1.2\").registry", "\"ghcr.io\"")),
    },
    About {
        signature: "x509(pem)",
        about: "the first certificate of a PEM text: `notBefore`, `notAfter`, `subject`, `issuer`, `names`, `serialNumber`, `isCA`",
        example: Some(("x509(pem).notAfter < now() + duration(\"720h\")", "false")),
    },
    About {
        signature: "certificates(pem)",
        about: "all certificates of a PEM text, in a list",
        example: Some(("any(certificates(pem), .isCA)", "false")),
    },
    About {
        signature: "selects(selector, labels)",
        about: "whether a label selector selects labels: nil selects nothing, an empty one everything",
        example: Some(("selects({matchLabels: {app: \"web\"}}, {app: \"web\", tier: \"a\"})", "true")),
    },
    About {
        signature: "cluster.<plural>.byName(ns, name)",
        about: "that object of the cluster, or nil",
        example: None,
    },
    About {
        signature: "cluster.<plural>.list(ns[, selector])",
        about: "the objects of the cluster that a selector selects, `\"*\"` for all namespaces",
        example: None,
    },
    About {
        signature: "cluster.any(\"<plural>\", …).byRef(ns, ref)",
        about: "the object that a reference names by its `kind` and `name`, if it is of one of these kinds, or nil",
        example: None,
    },
];

/// Every function that rules have of Kubernetes, in the order of the reference page.
pub fn functions() -> Vec<FunctionReference> {
    let row = |row: &About| FunctionReference {
        group: RULES_ONLY,
        signature: row.signature.to_owned(),
        about: row.about,
        example: row.example,
    };
    TABLE.iter().map(row).collect()
}

/// Adds the functions that need no cluster to a schema that has nothing of Kubernetes.
pub fn add_functions(schema: &mut Schema) {
    let image = add_image(schema);
    let certificate = add_certificate(schema);
    add_to(schema, image, certificate);
}

/// Adds the functions that need no cluster.
pub(super) fn add_to(schema: &mut Schema, image: ObjectId, certificate: ObjectId) {
    let map = || Shape::map(Shape::Any);
    let certificate = Shape::Object(certificate);
    let functions = [
        function("selects", SELECTS, &[("selector", map(), Nil::Passed), ("labels", map(), Nil::Passed)], Shape::Bool),
        function("image", IMAGE, &[("text", Shape::Text, Nil::Refused(Some("\"\"")))], Shape::TextWith(image)),
        // No text is a certificate, so that there is nothing to suggest.
        function("x509", X509, &[("pem", Shape::Text, Nil::Refused(None))], certificate.clone()),
        function(
            "certificates",
            CERTIFICATES,
            &[("pem", Shape::Text, Nil::Refused(Some("\"\"")))],
            Shape::list(certificate),
        ),
    ];
    functions.into_iter().for_each(|function| schema.add_function(function));
}

fn function(name: &str, id: FunctionId, parameters: &[(&str, Shape, Nil)], result: Shape) -> Function {
    let parameter = |(name, shape, nil): &(&str, Shape, Nil)| Parameter {
        name: (*name).to_owned(),
        shape: shape.clone(),
        required: true,
        nil: *nil,
        fields: &[],
        takes_text: false,
    };
    Function { name: name.to_owned(), parameters: parameters.iter().map(parameter).collect(), result, always: true, id }
}

/// Adds the text of an image, with its parts.
pub(super) fn add_image(schema: &mut Schema) -> ObjectId {
    let parts = [("registry", IMAGE_REGISTRY), ("name", IMAGE_NAME), ("tag", IMAGE_TAG), ("sha256", IMAGE_SHA256)];
    // Every image has a registry and a name, if only those that are meant when none is written.
    let is_always_there = |part| part == IMAGE_REGISTRY || part == IMAGE_NAME;
    let fields = parts.map(|(name, part)| {
        (name.to_owned(), Field { required: is_always_there(part), ..Field::computed(Shape::Text, part) })
    });
    schema.add_object(Object { name: "image".to_owned(), fields: fields.into_iter().collect(), open: false })
}

pub(super) fn add_certificate(schema: &mut Schema) -> ObjectId {
    let fields = certificate::fields().map(|(name, shape)| (name.to_owned(), Field::required(shape)));
    schema.add_object(Object { name: "certificate".to_owned(), fields: fields.collect(), open: false })
}

/// What one of these functions gives.
pub fn call<'a>(function: FunctionId, arguments: &[Value<'a>], machine: &Machine<'a>) -> Result<Value<'a>, Failure> {
    match (function, arguments) {
        (SELECTS, [selector, labels]) => {
            // A selector that is not there selects nothing, as everywhere in Kubernetes; an empty one selects all.
            if selector.is_nil() {
                return Ok(Value::Bool(false));
            }
            let selector = Selector::from_value(*selector).map_err(Failure::new)?;
            selector.matches_value(*labels).map(Value::Bool).map_err(Failure::new)
        }
        (IMAGE, [value]) => text_of(*value).map(Value::Text),
        (X509, [pem]) => certificate::first(machine, text_of(*pem)?),
        (CERTIFICATES, [pem]) => certificate::all(machine, text_of(*pem)?),
        _ => Err(Failure::new("the rule calls what it did not declare")),
    }
}

/// A part of an image reference.
pub fn image_part<'a>(part: ComputedId, reference: &'a str, machine: &Machine<'a>) -> Result<Value<'a>, Failure> {
    let text = |text: Option<&'a str>| text.map_or(Value::Nil, Value::Text);
    let image = Image(reference);
    Ok(match part {
        IMAGE_REGISTRY => Value::Text(match image.registry() {
            Cow::Borrowed(registry) => registry,
            Cow::Owned(registry) => machine.text(&registry)?,
        }),
        IMAGE_NAME => Value::Text(image.name()),
        IMAGE_TAG => text(image.tag()),
        IMAGE_SHA256 => text(image.sha256()),
        // A text where Kubernetes has an object. What would be computed of that counts as missing.
        _ => Value::Nil,
    })
}

fn text_of(value: Value<'_>) -> Result<&str, Failure> {
    match value {
        Value::Text(text) => Ok(text),
        _ => Err(Failure::new(format!("expected text, got {value}"))),
    }
}

#[cfg(test)]
mod tests {
    use portal_expr::{Arena, Host, Limits, Mode, Moment, Program, Slot, compile};

    use super::*;

    /// A host with nothing but a certificate.
    struct Pem(Program);

    const PEM: &str = include_str!("certificate/leaf.pem");

    impl Host for Pem {
        fn root(&self, _: Slot) -> Value<'_> {
            Value::Text(PEM)
        }

        fn computed<'a>(
            &'a self,
            part: ComputedId,
            base: Value<'a>,
            machine: &Machine<'a>,
        ) -> Result<Value<'a>, Failure> {
            image_part(part, text_of(base)?, machine)
        }

        fn call<'a>(
            &'a self,
            site: usize,
            arguments: &[Value<'a>],
            machine: &Machine<'a>,
        ) -> Result<Value<'a>, Failure> {
            call(self.0.calls()[site].function, arguments, machine)
        }
    }

    fn answer(source: &str) -> String {
        let mut schema = Schema::new();
        add_functions(&mut schema);
        schema.add_required_root("pem", Shape::Text);
        let program = match compile(source, &schema, Mode::Rules) {
            Ok(program) => program,
            Err(error) => return error.message,
        };
        let (host, arena) = (Pem(program), Arena::new());
        let now = Moment::new(1_800_000_000, 0);
        let outcome = host.0.evaluate(&host, &arena, &Limits::default(), now);
        outcome.map_or_else(|error| error.message, |value| value.to_string())
    }

    #[test]
    fn the_example_of_a_function_has_the_value_that_it_says() {
        for function in functions() {
            let Some((example, value)) = function.example else { continue };
            assert_eq!(answer(example), answer(value), "{example}");
            assert!(function.signature.starts_with(example.split('(').next().unwrap()) || example.starts_with("any("));
        }
    }

    #[test]
    fn an_image_outside_of_pods_has_its_parts() {
        for (source, expected) in [
            ("image('nginx')", "nginx"),
            ("image('Index.Docker.io/library/nginx@sha256:abc').registry", "docker.io"),
            ("image('Index.Docker.io/library/nginx@sha256:abc').name", "nginx"),
            ("image('Index.Docker.io/library/nginx@sha256:abc').tag", "<nil>"),
            ("image('Index.Docker.io/library/nginx@sha256:abc').sha256", "abc"),
            ("map(['a:1', 'b:2'], image(#).tag)", "[1 2]"),
            ("let image = image('a:1'); image.tag", "1"),
            ("image('a:1').tga", "image has no field `tga`, did you mean `tag`?"),
            ("image(5).tag", "`text` of `image` must be string, and this is int"),
            (
                "image(fromJSON('5')).tag",
                "`fromJSON(\"5\")` may be missing: write `image(fromJSON(\"5\") ?? \"\")` to give it a value, or `fromJSON(\"5\") != nil && …` to leave out what has none",
            ),
            ("image(fromJSON('5') ?? '').tag", "expected text, got 5"),
        ] {
            assert_eq!(answer(source), expected, "{source}");
        }
    }

    #[test]
    fn a_certificate_is_typed() {
        for (source, expected) in [
            ("x509(pem).notAfter", "2028-01-01 12:00:00 +0000 UTC"),
            ("x509(pem).notAfter.Year()", "2028"),
            ("x509(pem).notAfter - x509(pem).notBefore > duration('8760h')", "true"),
            ("x509(pem).notBefore < now()", "true"),
            ("'web.shop.svc' in x509(pem).names", "true"),
            ("any(x509(pem).names, isIP(#) && # in cidr('10.0.0.0/8'))", "true"),
            ("any(certificates(pem + pem), .isCA)", "false"),
            ("len(certificates(pem + pem))", "2"),
            ("len(certificates(''))", "0"),
            ("x509(fromBase64(toBase64(pem))).isCA", "false"),
            (
                "x509(toBase64(pem)).isCA",
                "this is no PEM, which has a line `-----BEGIN CERTIFICATE-----`: this is base64 of one, write `fromBase64(…)` around it",
            ),
            ("x509(pem).notAftr > now()", "certificate has no field `notAftr`, did you mean `notAfter`?"),
            (
                "x509(pem).notAfter > '2026-01-01'",
                "`>` does not work between time and string: write `date(\"2026-01-01\")`",
            ),
            ("x509(pem).isCA == 'true'", "`==` does not work between bool and string: write `true` without quotes"),
            (
                "x509(fromJSON('null')).isCA",
                "`fromJSON(\"null\")` may be missing: write `fromJSON(\"null\") != nil && …` to leave out what has none",
            ),
        ] {
            assert_eq!(answer(source), expected, "{source}");
        }
    }
}
