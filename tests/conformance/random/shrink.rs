//! Shrinking: a question that is answered wrongly becomes the smallest one that still is.

use serde_json::{Map, Value};

use super::super::oracle::Oracle;
use super::compare::{Answers, ask, wrong};
use super::expressions::Question;

/// How many times a question is made smaller, and how many ways are tried each time: a start of the two programs costs
/// more than a hundred answers.
const ROUNDS: usize = 60;
const TRIES: usize = 200;

/// The smallest question that is still answered wrongly, in the same way, with the answers to it.
pub(super) fn shrink(oracle: &Oracle, question: Question) -> (Question, Answers) {
    let mut answers = ask(oracle, std::slice::from_ref(&question)).remove(0);
    let mut smallest = question;
    let what = wrong(&smallest, &answers);
    for _ in 0..ROUNDS {
        let questions = simpler(&smallest);
        let tried = ask(oracle, &questions);
        let next = questions.into_iter().zip(tried).find(|(question, answers)| wrong(question, answers) == what);
        let Some((question, found)) = next else { break };
        (smallest, answers) = (question, found);
    }
    (smallest, answers)
}

/// The same question with less in it, in many ways.
fn simpler(question: &Question) -> Vec<Question> {
    let environments =
        fields(&question.environment).into_iter().map(|environment| Question { environment, ..question.clone() });
    let expressions =
        question.expression.simpler().into_iter().map(|expression| Question { expression, ..question.clone() });
    expressions.take(TRIES).chain(environments.take(TRIES)).collect()
}

/// Every map that is this one with less in it.
fn fields(map: &Map<String, Value>) -> Vec<Map<String, Value>> {
    let with = |key: &String, value: Option<Value>| {
        let mut map = map.clone();
        match value {
            Some(value) => drop(map.insert(key.clone(), value)),
            None => drop(map.remove(key)),
        }
        map
    };
    let without = map.keys().map(|key| with(key, None));
    let less = map.iter().flat_map(|(key, value)| less(value).into_iter().map(move |value| (key, value)));
    without.chain(less.map(|(key, value)| with(key, Some(value)))).collect()
}

/// Every value that is this one with less in it.
fn less(value: &Value) -> Vec<Value> {
    match value {
        Value::Object(map) => fields(map).into_iter().map(Value::Object).collect(),
        Value::Array(elements) => {
            let without = (0..elements.len()).map(|index| {
                let mut elements = elements.clone();
                elements.remove(index);
                Value::Array(elements)
            });
            let inner = elements.iter().enumerate().flat_map(|(index, element)| {
                less(element).into_iter().map(move |element| {
                    let mut elements = elements.clone();
                    elements[index] = element;
                    Value::Array(elements)
                })
            });
            without.chain(inner).collect()
        }
        Value::String(text) if text.chars().count() > 1 => {
            let half = text.chars().count() / 2;
            vec![text.chars().take(half).collect::<String>().into(), text.chars().skip(half).collect::<String>().into()]
        }
        _ => Vec::new(),
    }
}
