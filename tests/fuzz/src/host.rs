//! A host with everything that a schema can say: closed and open roots, lists that are never nil, computed fields, calls.

use std::cell::RefCell;

use portal_document::Document;
use portal_expr::{
    Among, Calls, ComputedId, Facts, Failure, Field, Fields, Function, FunctionId, Host, Machine, Nil, Object,
    Parameter, Schema, Shape, Slot, Value,
};

use crate::prune::prune;

/// Documents for the roots of [`schema`], and the roots that were asked for.
pub(crate) struct Cluster {
    documents: [Document; 2],
    asked: RefCell<Vec<Slot>>,
}

impl Cluster {
    /// The same document for `container`, which is closed, and for `object`, which is open.
    pub(crate) fn new(document: &Document) -> Self {
        Self::of([document.clone(), document.clone()])
    }

    /// With nothing in the documents but what the facts say is read.
    pub(crate) fn pruned(&self, facts: &Facts) -> Self {
        let documents = [0, 1].map(|slot| prune(&self.documents[usize::from(slot)], Slot(slot), facts));
        Self::of(documents)
    }

    fn of(documents: [Document; 2]) -> Self {
        Self { documents, asked: RefCell::default() }
    }

    /// Checks that the facts name every root that was asked for.
    pub(crate) fn check_roots(&self, facts: &Facts) {
        for slot in self.asked.borrow().iter() {
            assert!(facts.reads_root(*slot), "the root {} is read, which no fact says", slot.0);
        }
    }
}

impl Host for Cluster {
    fn root(&self, slot: Slot) -> Value<'_> {
        self.asked.borrow_mut().push(slot);
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
            [Value::Int(number)] => Ok(Value::Int(number.wrapping_mul(2))),
            [Value::Nil, ..] => Err(Failure::new("a namespace is needed")),
            _ => machine.list(arguments),
        }
    }
}

/// What expressions may name.
pub(crate) fn schema() -> Schema {
    let mut schema = Schema::new();
    let image = schema.add_object(Object {
        name: "an image".to_owned(),
        fields: Fields::from_iter([("tag".to_owned(), Field::computed(Shape::Text, ComputedId(0)))]),
        open: false,
    });
    let fields = [
        ("image", Shape::TextWith(image)),
        ("privileged", Shape::Bool),
        ("user", Shape::Int),
        ("args", Shape::list(Shape::Text)),
        ("ports", Shape::list(Shape::Any)),
        ("labels", Shape::map(Shape::Text)),
        ("env", Shape::Map { value: Box::new(Shape::Any), never_nil: false }),
        ("weight", Shape::Float),
    ];
    let container = schema.add_object(Object {
        name: "a container".to_owned(),
        fields: fields.into_iter().map(|(name, shape)| (name.to_owned(), Field::optional(shape))).collect(),
        open: false,
    });
    schema.add_root("container", Shape::Object(container));
    schema.add_root("object", Shape::Any);
    let parameter = |name: &str, shape, required| Parameter {
        name: name.to_owned(),
        shape,
        required,
        nil: Nil::Passed,
        fields: &[],
        takes_text: false,
    };
    let list = Function {
        name: "list".to_owned(),
        parameters: vec![parameter("ns", Shape::Text, true), parameter("selector", Shape::map(Shape::Any), false)],
        result: Shape::list(Shape::Any),
        always: true,
        id: FunctionId(7),
    };
    let by_ref =
        Function { name: "byRef".to_owned(), result: Shape::Any, always: false, id: FunctionId(9), ..list.clone() };
    let among = Some(Among { word: "any", functions: [by_ref].into() });
    schema.add_root(
        "cluster",
        Shape::Calls(Calls { names: 1..=2, functions: [list].into(), results: Default::default(), among }),
    );
    schema.add_function(Function {
        name: "double".to_owned(),
        parameters: vec![parameter("number", Shape::Int, true)],
        result: Shape::Int,
        always: true,
        id: FunctionId(8),
    });
    schema
}
