//! A sorted map that is copied in no time. Copies share all that none of them has changed since.
//!
//! A B-tree whose nodes are counted references: whoever changes one copies the nodes from the root to the entry, unless nobody else
//! has them. So one task can write while others read a copy, and nobody waits for anybody.

use std::borrow::Borrow;
use std::slice;
use std::sync::Arc;

/// A sorted map. A clone is a copy of its own, and costs a counter.
#[derive(Debug)]
pub(super) struct Tree<K, V> {
    root: Option<Arc<Node<K, V>>>,
    len: usize,
}

#[derive(Clone, Debug)]
enum Node<K, V> {
    Leaf(Vec<(K, V)>),
    /// Children in order, at least one. No key of a child is below the key beside it, but for the first child, which has all keys that are
    /// below that of the second.
    Branch(Vec<Child<K, V>>),
}

/// A node, and a key that none of its keys is below.
type Child<K, V> = (K, Arc<Node<K, V>>);

/// The entries of a tree, in order.
pub(super) struct Iter<'a, K, V> {
    /// What is left of the branches above the leaf, the root's first.
    above: Vec<slice::Iter<'a, Child<K, V>>>,
    leaf: slice::Iter<'a, (K, V)>,
}

/// The most children of a branch. A change copies a node of each level, and has to go to each child to count a reference, which is nearly
/// always far away: more children make that dearer, fewer make more levels.
const CHILDREN: usize = 16;

/// The most entries of a leaf that are copied as they are. That is as fast as memory.
const PLAIN: usize = 64;

impl<K: Ord + Clone, V: Clone> Tree<K, V> {
    /// A tree of entries that come in order, no two of which have the same key.
    pub(super) fn of_sorted(entries: impl ExactSizeIterator<Item = (K, V)>) -> Tree<K, V> {
        let len = entries.len();
        let mut level = nodes(entries, most::<K, V>(), Node::Leaf, |(key, _)| key);
        while level.len() > 1 {
            level = nodes(level.into_iter(), CHILDREN, Node::Branch, |(key, _)| key);
        }
        Tree { root: level.pop().map(|(_, root)| root), len }
    }

    /// How many entries there are.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The value of a key.
    pub(super) fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        find(self.leaf_of(key), key)
    }

    /// The values of some keys that are there. Those that come in order are mostly neighbours.
    pub(super) fn get_all<'a>(&'a self, keys: impl IntoIterator<Item = K>) -> impl Iterator<Item = &'a V>
    where
        K: 'a,
    {
        let mut leaf: &[(K, V)] = &[];
        keys.into_iter().filter_map(move |key| {
            if !matches!(leaf, [(first, _), .., (last, _)] if (first..=last).contains(&&key)) {
                leaf = self.leaf_of(&key);
            }
            find(leaf, &key)
        })
    }

    /// The entries among which a key is, if any has it.
    fn leaf_of<Q: Ord + ?Sized>(&self, key: &Q) -> &[(K, V)]
    where
        K: Borrow<Q>,
    {
        let Some(mut node) = self.root.as_deref() else { return &[] };
        loop {
            match node {
                Node::Branch(children) => node = &children[child_of(children, key)].1,
                Node::Leaf(entries) => return entries,
            }
        }
    }

    /// Sets the value of a key. Returns the one that it had.
    pub(super) fn insert(&mut self, key: K, value: V) -> Option<V> {
        let Some(root) = &mut self.root else {
            self.root = Some(Arc::new(Node::Leaf(vec![(key, value)])));
            self.len = 1;
            return None;
        };
        let (before, split) = Arc::make_mut(root).insert(key, value);
        if let Some((key, right)) = split {
            let left = Arc::clone(root);
            // The key beside the first child is never compared.
            *root = Arc::new(Node::Branch(vec![(key.clone(), left), (key, right)]));
        }
        self.len += usize::from(before.is_none());
        before
    }

    /// Removes a key. Returns the value that it had.
    pub(super) fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        // What is not there must not cost a copy.
        self.get(key)?;
        let root = self.root.as_mut()?;
        let removed = Arc::make_mut(root).remove(key);
        self.len -= 1;
        while let Node::Branch(children) = &**root
            && let [(_, only)] = &children[..]
        {
            *root = Arc::clone(only);
        }
        if self.len == 0 {
            self.root = None;
        }
        removed
    }

    /// The first key from a key on. Unlike an iterator it has nothing to remember.
    pub(super) fn first_from(&self, key: &K) -> Option<&K> {
        fn first<'a, K: Ord, V>(node: &'a Node<K, V>, key: &K) -> Option<&'a K> {
            match node {
                Node::Leaf(entries) => {
                    entries.get(entries.partition_point(|(known, _)| known < key)).map(|(key, _)| key)
                }
                // The child that would have the key may end before it, and its neighbour begins behind it.
                Node::Branch(children) => {
                    children[child_of(children, key)..].iter().find_map(|(_, child)| first(child, key))
                }
            }
        }
        first(self.root.as_deref()?, key)
    }

    /// The entries from a key on, in order.
    pub(super) fn iter_from<Q: Ord + ?Sized>(&self, key: &Q) -> Iter<'_, K, V>
    where
        K: Borrow<Q>,
    {
        let mut iter = Iter { above: Vec::new(), leaf: [].iter() };
        let Some(mut node) = self.root.as_deref() else { return iter };
        loop {
            match node {
                Node::Branch(children) => {
                    let place = child_of(children, key);
                    iter.above.push(children[place + 1..].iter());
                    node = &children[place].1;
                }
                Node::Leaf(entries) => {
                    let place = entries.partition_point(|(known, _)| known.borrow() < key);
                    iter.leaf = entries[place..].iter();
                    return iter;
                }
            }
        }
    }
}

/// Full nodes of what comes in order, each with its first key.
fn nodes<K: Clone, V, T>(
    mut entries: impl ExactSizeIterator<Item = T>,
    most: usize,
    node: fn(Vec<T>) -> Node<K, V>,
    key: fn(&T) -> &K,
) -> Vec<Child<K, V>> {
    let count = entries.len().div_ceil(most);
    let mut next = || {
        let entries: Vec<T> = entries.by_ref().take(most).collect();
        (key(&entries[0]).clone(), Arc::new(node(entries)))
    };
    (0..count).map(|_| next()).collect()
}

fn find<'a, K: Borrow<Q>, V, Q: Ord + ?Sized>(entries: &'a [(K, V)], key: &Q) -> Option<&'a V> {
    let place = entries.binary_search_by(|(known, _)| known.borrow().cmp(key)).ok()?;
    Some(&entries[place].1)
}

/// The place of the child that has a key, if any has it.
fn child_of<K: Borrow<Q>, V, Q: Ord + ?Sized>(children: &[Child<K, V>], key: &Q) -> usize {
    children[1..].partition_point(|(known, _)| known.borrow() <= key)
}

impl<K: Ord + Clone, V: Clone> Node<K, V> {
    /// Sets the value of a key. Returns the one that it had, and what did not fit any more, with its least key.
    fn insert(&mut self, key: K, value: V) -> (Option<V>, Option<Child<K, V>>) {
        match self {
            Node::Leaf(entries) => match entries.binary_search_by(|(known, _)| known.cmp(&key)) {
                Ok(place) => (Some(std::mem::replace(&mut entries[place].1, value)), None),
                Err(place) => {
                    let right = put(entries, most::<K, V>(), place, (key, value));
                    (None, right.map(|right| (right[0].0.clone(), Arc::new(Node::Leaf(right)))))
                }
            },
            Node::Branch(children) => {
                let place = child_of(children, &key);
                let (before, more) = Arc::make_mut(&mut children[place].1).insert(key, value);
                let Some(more) = more else { return (before, None) };
                let right = put(children, CHILDREN, place + 1, more);
                (before, right.map(|right| (right[0].0.clone(), Arc::new(Node::Branch(right)))))
            }
        }
    }

    /// Removes a key that is there.
    fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        match self {
            Node::Leaf(entries) => {
                let place = entries.binary_search_by(|(known, _)| known.borrow().cmp(key)).ok()?;
                Some(entries.remove(place).1)
            }
            Node::Branch(children) => {
                let place = child_of(children, key);
                let removed = Arc::make_mut(&mut children[place].1).remove(key);
                tidy(children, place);
                removed
            }
        }
    }

    fn len(&self) -> usize {
        match self {
            Node::Leaf(entries) => entries.len(),
            Node::Branch(children) => children.len(),
        }
    }

    fn most(&self) -> usize {
        match self {
            Node::Leaf(_) => most::<K, V>(),
            Node::Branch(_) => CHILDREN,
        }
    }

    /// Whether nothing is in it. Its last leaf went empty then, and it had no other child.
    fn is_empty(&self) -> bool {
        match self {
            Node::Leaf(entries) => entries.is_empty(),
            Node::Branch(children) => matches!(&children[..], [(_, only)] if only.is_empty()),
        }
    }

    /// Takes the entries of the next node on the same level, whose keys are from `key` on.
    fn append(&mut self, key: K, right: &Node<K, V>) {
        match (self, right) {
            (Node::Leaf(entries), Node::Leaf(more)) => entries.extend_from_slice(more),
            (Node::Branch(children), Node::Branch(more)) => {
                // The key beside a first child may be anything, and this one is first no more.
                children.push((key, Arc::clone(&more[0].1)));
                children.extend_from_slice(&more[1..]);
            }
            _ => unreachable!("all leaves are on the same level"),
        }
    }
}

/// The most entries of a leaf. Those that hold references are as dear to copy as children.
const fn most<K, V>() -> usize {
    if std::mem::needs_drop::<(K, V)>() { CHILDREN } else { PLAIN }
}

/// Puts an entry at a place, and returns what has to go into a node of its own if there is no room: half of the entries, or the last
/// entry alone, so that what comes in order fills nodes. A node never gets memory for more entries than it may have.
fn put<T>(entries: &mut Vec<T>, most: usize, place: usize, entry: T) -> Option<Vec<T>> {
    if entries.len() < most {
        entries.insert(place, entry);
        return None;
    }
    if place == most {
        return Some(vec![entry]);
    }
    let middle = most / 2;
    let mut right = entries.split_off(middle);
    match place.checked_sub(middle) {
        Some(place) if place > 0 => right.insert(place, entry),
        _ => entries.insert(place, entry),
    }
    Some(right)
}

/// Leaves out a child that became empty, and makes one of a child that became small and its neighbour, if they fit.
fn tidy<K: Ord + Clone, V: Clone>(children: &mut Vec<Child<K, V>>, place: usize) {
    let len = children[place].1.len();
    if children[place].1.is_empty() {
        // An only child stays, and whoever is above leaves out both.
        if children.len() > 1 {
            children.remove(place);
        }
        return;
    }
    let (left, most) = (place.saturating_sub(1), children[place].1.most());
    // What was deleted must not be paid for.
    let is_small = len < most / 4 && left + 1 < children.len();
    if !is_small || children[left].1.len() + children[left + 1].1.len() > most {
        return;
    }
    let (key, right) = children.remove(left + 1);
    Arc::make_mut(&mut children[left].1).append(key, &right);
}

impl<'a, K, V> Iter<'a, K, V> {
    /// Goes to the first leaf below a node.
    fn descend(&mut self, mut node: &'a Node<K, V>) {
        loop {
            match node {
                Node::Branch(children) => {
                    self.above.push(children[1..].iter());
                    node = &children[0].1;
                }
                Node::Leaf(entries) => {
                    self.leaf = entries.iter();
                    return;
                }
            }
        }
    }
}

impl<'a, K, V> Iterator for Iter<'a, K, V> {
    type Item = (&'a K, &'a V);

    fn next(&mut self) -> Option<(&'a K, &'a V)> {
        loop {
            if let Some((key, value)) = self.leaf.next() {
                return Some((key, value));
            }
            match self.above.last_mut()?.next() {
                Some((_, node)) => self.descend(node),
                None => drop(self.above.pop()),
            }
        }
    }
}

impl<K, V> Clone for Tree<K, V> {
    fn clone(&self) -> Self {
        Tree { root: self.root.clone(), len: self.len }
    }
}

impl<K, V> Default for Tree<K, V> {
    fn default() -> Self {
        Tree { root: None, len: 0 }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// Compares a tree with what it should hold, and looks at every node.
    #[track_caller]
    fn check(tree: &Tree<u32, u32>, expected: &BTreeMap<u32, u32>) {
        assert_eq!(tree.len(), expected.len());
        assert!(tree.iter_from(&0).eq(expected.iter()));
        let Some(root) = &tree.root else { return };
        check_node(root, None, None, true);
    }

    /// Returns how many levels a node has.
    fn check_node(node: &Node<u32, u32>, from: Option<u32>, below: Option<u32>, is_root: bool) -> usize {
        assert!(node.len() <= node.most() && (is_root || !node.is_empty()));
        match node {
            Node::Leaf(entries) => {
                assert!(entries.iter().all(|(key, _)| from.is_none_or(|from| from <= *key)));
                assert!(entries.iter().all(|(key, _)| below.is_none_or(|below| *key < below)));
                1
            }
            Node::Branch(children) => {
                let levels = children.iter().enumerate().map(|(place, (key, child))| {
                    let from = if place == 0 { from } else { Some(*key) };
                    check_node(child, from, children.get(place + 1).map(|(key, _)| *key).or(below), false)
                });
                let levels: Vec<usize> = levels.collect();
                assert!(levels.iter().all(|level| *level == levels[0]));
                levels[0] + 1
            }
        }
    }

    #[test]
    fn a_tree_holds_what_a_map_of_the_standard_library_holds() {
        for seed in 0..20 {
            let mut random = fastrand::Rng::with_seed(seed);
            let (mut tree, mut expected) = (Tree::default(), BTreeMap::new());
            let mut kept: Vec<(Tree<u32, u32>, BTreeMap<u32, u32>)> = Vec::new();
            let range = [50, 1_000, 100_000][seed as usize % 3];
            for step in 0..6_000 {
                let key = random.u32(..range);
                // It grows, and then shrinks until nothing is left.
                if random.u32(..100) < if step < 3_000 { 70 } else { 20 } {
                    assert_eq!(tree.insert(key, step), expected.insert(key, step));
                } else {
                    let key = expected.range(key..).next().map_or(key, |(key, _)| *key);
                    assert_eq!(tree.remove(&key), expected.remove(&key));
                }
                let key = random.u32(..range);
                assert_eq!(tree.get(&key), expected.get(&key));
                assert!(tree.iter_from(&key).take(70).eq(expected.range(key..).take(70)));
                assert_eq!(tree.first_from(&key), expected.range(key..).next().map(|(key, _)| key));
                let some = [key, key + 1, key + 2, random.u32(..range)];
                assert!(tree.get_all(some).eq(some.iter().filter_map(|key| expected.get(key))));
                if step % 500 == 0 {
                    check(&tree, &expected);
                    kept.push((tree.clone(), expected.clone()));
                }
            }
            // No copy has noticed what became of the others.
            kept.iter().for_each(|(tree, expected)| check(tree, expected));
        }
    }

    fn count(node: &Node<u32, u32>) -> usize {
        match node {
            Node::Leaf(_) => 1,
            Node::Branch(children) => 1 + children.iter().map(|(_, child)| count(child)).sum::<usize>(),
        }
    }

    #[test]
    fn what_comes_in_order_fills_the_nodes() {
        let mut tree = Tree::default();
        for key in 0..10_000 {
            tree.insert(key, key);
        }
        // As many as there are when all but the last of each level are full.
        let (mut level, mut expected) = (10_000_usize.div_ceil(most::<u32, u32>()), 0);
        while level > 1 {
            expected += level;
            level = level.div_ceil(CHILDREN);
        }
        assert_eq!(count(tree.root.as_deref().unwrap()), expected + 1);
    }

    #[test]
    fn a_tree_of_many_entries_is_the_tree_of_one_after_the_other() {
        for len in [0, 1, 15, 16, 17, 63, 64, 65, 1_024, 1_025, 20_000] {
            let entries = (0..len).map(|key| (2 * key, key));
            let mut tree = Tree::of_sorted(entries.clone());
            let (mut expected, mut single) = (BTreeMap::new(), Tree::default());
            for (key, value) in entries {
                expected.insert(key, value);
                single.insert(key, value);
            }
            check(&tree, &expected);
            assert_eq!(tree.root.as_deref().map(count), single.root.as_deref().map(count));
            // It takes more, and gives all of it away.
            for key in (0..len).map(|key| 2 * key + 1) {
                tree.insert(key, key);
                expected.insert(key, key);
            }
            check(&tree, &expected);
            for key in 0..2 * len {
                assert_eq!(tree.remove(&key), expected.remove(&key));
            }
            check(&tree, &expected);
        }
    }

    #[test]
    fn what_was_deleted_leaves_no_nodes() {
        let mut tree = Tree::default();
        for key in 0..10_000 {
            tree.insert(key, key);
        }
        for key in (0..10_000).filter(|key| key % 100 > 0) {
            tree.remove(&key);
        }
        assert_eq!(tree.len(), 100);
        assert!(count(tree.root.as_deref().unwrap()) <= 15);
    }
}
