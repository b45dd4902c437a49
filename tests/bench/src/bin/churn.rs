//! What an allocator does for Portal: `churn`. Two threads parse pods, evaluate every rule on them and let them take the place of
//! others in a cache, with a large body now and then. Prints pods per second
//! of processor time, and the bytes of memory that are left in use after it.

#[cfg(feature = "jemalloc")]
use tikv_jemallocator::Jemalloc;

use std::hint::black_box;

use portal_bench::measure;
use portal_bench::objects::{cache_drops, pods};
use portal_bench::portal;
use portal_bench::rules::RULES;
use portal_document::{Document, Options};
use portal_expr::{Arena, Limits};

#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

const THREADS: usize = 2;
const PODS: usize = 2_000;
/// Objects in each thread's cache.
const CACHED: usize = 5_000;
/// Pods that each thread goes through.
const CHURN: usize = 60_000;
/// After so many pods comes a large body.
const LARGE: usize = 500;

fn main() {
    let pods: Vec<String> = pods(PODS).collect();
    let large = format!("[{}0]", r#"{"name":"a"},"#.repeat((3 << 20) / 13));
    let before = measure::resident().expect("the kernel says it");
    let begin = measure::process_time();
    let caches: Vec<Vec<Document>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                scope.spawn({
                    let (pods, large) = (&pods, &large);
                    move || churn(thread, pods, large)
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("no thread panics")).collect()
    });
    let seconds = (measure::process_time() - begin).as_secs_f64();
    let taken = measure::resident().expect("the kernel says it") - before;
    black_box(&caches);
    println!("{} {taken}", (THREADS * CHURN) as f64 / seconds);
}

fn churn(thread: usize, pods: &[String], large: &str) -> Vec<Document> {
    let drops = cache_drops();
    let options = Options { drop: &drops, ..Options::default() };
    let parse = |body: &str| Document::parse(body.as_bytes(), &options).expect("the bench's own objects are JSON");
    let schema = portal::schema();
    let expressions = RULES.each_ref().map(|rule| portal::compile(rule, &schema));
    let (mut arena, limits) = (Arena::new(), Limits::default());
    let mut cache: Vec<Document> = Vec::with_capacity(CACHED);
    for index in 0..CHURN {
        let document = parse(&pods[(index * 7 + thread) % pods.len()]);
        let contexts = portal::contexts(&document);
        for (rule, expression) in RULES.iter().zip(&expressions) {
            for context in rule.choose(&contexts) {
                black_box(portal::evaluate(&**expression, context, &mut arena, &limits));
            }
        }
        drop(contexts);
        match cache.get_mut(index * 7919 % CACHED) {
            Some(place) => *place = document,
            None => cache.push(document),
        }
        if index % LARGE == LARGE - 1 {
            drop(black_box(parse(large)));
        }
    }
    cache
}
