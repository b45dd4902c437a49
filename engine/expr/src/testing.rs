//! A small host for tests: a pod, a root of unknown shape, and a root that can only be called through.

use portal_document::{Document, Options};

use crate::{
    Among, Arena, Calls, ComputedId, Failure, Field, Fields, Function, FunctionId, Host, Limits, Machine, Mode, Moment,
    Nil, Object, Parameter, Program, Schema, Shape, Slot, Value, compile,
};

pub(crate) struct Pod {
    pub(crate) schema: Schema,
    documents: Vec<Document>,
}

const CONTAINER: &str = r#"{"image": "ghcr.io/team/web:1.2", "privileged": true, "args": ["-v"], "ports": null,
    "name": "web", "policy": "Always", "limits": {"cpu": "1000m", "memory": "20Mi"}, "requests": {"cpu": 1, "memory": "10M"}}"#;
const OBJECT: &str = r#"{"kind": "Pod", "spec": {"containers": [
    {"name": "web", "image": "web:latest", "limit": 2},
    {"name": "log", "image": "log:1"}
]}}"#;

const SPEC: &str = r#"{"containers": [
    {"image": "web:1.2", "privileged": true},
    {"image": "log:1", "privileged": false}
], "name": "pod"}"#;

impl Pod {
    pub(crate) fn new() -> Self {
        let mut schema = Schema::new();
        let image = schema.add_object(Object {
            name: "an image".to_owned(),
            fields: Fields::from_iter([("tag".to_owned(), Field::computed(Shape::Text, ComputedId(0)))]),
            open: false,
        });
        let container = schema.add_object(Object {
            name: "a container".to_owned(),
            fields: Fields::from_iter([
                ("image".to_owned(), Field::optional(Shape::TextWith(image))),
                ("privileged".to_owned(), Field::optional(Shape::Bool)),
                ("user".to_owned(), Field::optional(Shape::Int)),
                ("args".to_owned(), Field::optional(Shape::list(Shape::Text))),
                ("ports".to_owned(), Field::optional(Shape::list(Shape::Any))),
                ("labels".to_owned(), Field::optional(Shape::map(Shape::Text))),
                ("name".to_owned(), Field::required(Shape::Text)),
                ("policy".to_owned(), Field::optional(Shape::word(["Always", "Never"]))),
                ("limits".to_owned(), Field::optional(Shape::map(Shape::Quantity))),
                ("requests".to_owned(), Field::optional(Shape::map(Shape::Quantity))),
            ]),
            open: false,
        });
        schema.add_required_root("container", Shape::Object(container));
        schema.add_root("object", Shape::Any);
        let parameter = |name: &str, shape, required| Parameter {
            name: name.to_owned(),
            shape,
            required,
            nil: Nil::Passed,
            fields: &[],
            takes_text: false,
        };
        schema.add_root(
            "cluster",
            Shape::Calls(Calls {
                names: 1..=2,
                functions: [Function {
                    name: "list".to_owned(),
                    parameters: vec![
                        parameter("ns", Shape::Text, true),
                        parameter("selector", Shape::map(Shape::Any), false),
                    ],
                    result: Shape::list(Shape::Any),
                    always: true,
                    id: FunctionId(7),
                }]
                .into(),
                results: Default::default(),
                among: Some(Among {
                    word: "any",
                    functions: [Function {
                        name: "byRef".to_owned(),
                        parameters: vec![
                            parameter("ns", Shape::Text, true),
                            Parameter { fields: &["kind"], ..parameter("ref", Shape::map(Shape::Any), true) },
                        ],
                        result: Shape::Any,
                        always: false,
                        id: FunctionId(9),
                    }]
                    .into(),
                }),
            }),
        );
        schema.add_function(Function {
            name: "double".to_owned(),
            parameters: vec![parameter("number", Shape::Int, true)],
            result: Shape::Int,
            always: true,
            id: FunctionId(8),
        });
        let spec = schema.add_object(Object {
            name: "a spec".to_owned(),
            fields: Fields::from_iter([
                ("containers".to_owned(), Field::optional(Shape::list(Shape::Object(container)))),
                ("name".to_owned(), Field::optional(Shape::Text)),
                ("priority".to_owned(), Field::optional(Shape::Int)),
                ("size".to_owned(), Field::computed(Shape::Int, ComputedId(1))),
            ]),
            open: false,
        });
        schema.add_root("spec", Shape::Object(spec));
        let parse = |text: &str| Document::parse(text.as_bytes(), &Options::default()).expect("the test's own JSON");
        Self { schema, documents: vec![parse(CONTAINER), parse(OBJECT), parse("null"), parse(SPEC)] }
    }

    pub(crate) fn compile(&self, source: &str) -> Result<Program, crate::Error> {
        compile(source, &self.schema, Mode::Rules)
    }

    /// What an expression gives, as text.
    pub(crate) fn evaluate(&self, source: &str) -> String {
        let program = match self.compile(source) {
            Ok(program) => program,
            Err(error) => return error.to_string(),
        };
        let arena = Arena::new();
        match program.evaluate(self, &arena, &Limits::default(), Moment::default()) {
            Ok(value) => value.to_string(),
            Err(error) => error.to_string(),
        }
    }
}

impl Host for Pod {
    fn root(&self, slot: Slot) -> Value<'_> {
        self.documents.get(usize::from(slot.0)).map_or(Value::Nil, |document| Value::from_node(document.root()))
    }

    fn computed<'a>(&'a self, _: ComputedId, base: Value<'a>, _: &Machine<'a>) -> Result<Value<'a>, Failure> {
        match base {
            Value::Text(image) => Ok(image.rsplit_once(':').map_or(Value::Nil, |(_, tag)| Value::Text(tag))),
            _ => Ok(Value::Nil),
        }
    }

    fn call<'a>(&'a self, _: usize, arguments: &[Value<'a>], machine: &Machine<'a>) -> Result<Value<'a>, Failure> {
        match arguments {
            [Value::Int(number)] => Ok(Value::Int(number * 2)),
            [Value::Nil, ..] => Err(Failure::new("a namespace is needed")),
            _ => machine.list(arguments),
        }
    }
}
