//! Follows the paths to drop and to mask while a document is read, container by container.

use crate::path::{Path, Segment};

pub(crate) struct Filter<'o> {
    drop: &'o [Path],
    mask: &'o [Path],
    /// Open containers.
    depth: usize,
    /// Paths that may still select something, for the containers around this place one after the other. A path is its
    /// number, those to mask after those to drop.
    alive: Vec<usize>,
    /// Where in `alive` each container begins, as long as there is a path for it. A container without paths has none
    /// inside either, so that only the outermost ones are here.
    levels: Vec<usize>,
    /// Where the paths of the innermost level end and those of the coming value begin.
    coming: usize,
    /// Whether the coming value is selected by a path to mask.
    is_coming_masked: bool,
    /// Depth of the container from which on everything is masked.
    masked_depth: usize,
}

impl Filter<'static> {
    /// A filter that lets everything through.
    pub(crate) fn none() -> Filter<'static> {
        Filter::new(&[], &[])
    }
}

impl<'o> Filter<'o> {
    pub(crate) fn new(drop: &'o [Path], mask: &'o [Path]) -> Filter<'o> {
        let paths = drop.iter().chain(mask).enumerate();
        let alive = paths.filter(|(_, path)| !path.segments().is_empty()).map(|(number, _)| number).collect();
        let is_coming_masked = mask.iter().any(|path| path.segments().is_empty());
        Filter {
            drop,
            mask,
            depth: 0,
            alive,
            levels: Vec::new(),
            coming: 0,
            is_coming_masked,
            masked_depth: usize::MAX,
        }
    }

    /// Whether a scalar that comes here has to be masked.
    #[inline]
    pub(crate) fn is_masked(&self) -> bool {
        self.is_coming_masked || self.depth >= self.masked_depth
    }

    /// Whether the value of a key is to be read.
    #[inline]
    pub(crate) fn keeps_key(&mut self, key: &str) -> bool {
        !self.has_paths() || self.keeps(|segment| segment.selects_key(key))
    }

    /// Whether an element is to be read.
    #[inline]
    pub(crate) fn keeps_element(&mut self) -> bool {
        !self.has_paths() || self.keeps(|segment| matches!(segment, Segment::AnyIndex))
    }

    /// Whether a path may select something in the innermost container.
    #[inline]
    pub(crate) fn has_paths(&self) -> bool {
        self.levels.len() == self.depth
    }

    fn keeps(&mut self, selects: impl Fn(&Segment) -> bool) -> bool {
        self.alive.truncate(self.coming);
        self.is_coming_masked = false;
        let level = self.levels.last().copied().unwrap_or_default();
        for at in level..self.coming {
            let number = self.alive[at];
            let is_mask = number >= self.drop.len();
            let path = if is_mask { &self.mask[number - self.drop.len()] } else { &self.drop[number] };
            let segments = path.segments();
            if !selects(&segments[self.depth - 1]) {
                continue;
            }
            if segments.len() > self.depth {
                self.alive.push(number);
            } else if is_mask {
                self.is_coming_masked = true;
            } else {
                self.alive.truncate(self.coming);
                return false;
            }
        }
        true
    }

    /// Follows the reader into the container that is the coming value.
    #[inline]
    pub(crate) fn begin(&mut self) {
        let has_paths = self.has_paths() && self.alive.len() > self.coming;
        self.depth += 1;
        if has_paths {
            self.levels.push(self.coming);
            self.coming = self.alive.len();
        }
        if self.is_coming_masked {
            self.masked_depth = self.masked_depth.min(self.depth);
            self.is_coming_masked = false;
        }
    }

    /// Follows the reader out of the innermost container.
    #[inline]
    pub(crate) fn end(&mut self) {
        if self.has_paths()
            && let Some(level) = self.levels.pop()
        {
            self.alive.truncate(level);
            self.coming = level;
        }
        if self.depth == self.masked_depth {
            self.masked_depth = usize::MAX;
        }
        self.depth -= 1;
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use crate::{Document, Options, Path, from_yaml};

    /// Reads a body from JSON and from YAML, which has other code for this.
    #[track_caller]
    fn check(body: &str, drop: &[&str], mask: &[&str], expected: Expect) {
        let [drop, mask] =
            [drop, mask].map(|paths| -> Vec<_> { paths.iter().map(|path| Path::parse(path).unwrap()).collect() });
        let options = Options { drop: &drop, mask: &mask, ..Options::default() };
        let document = Document::parse(body.as_bytes(), &options).unwrap();
        expected.assert_eq(&document.to_json());
        expected.assert_eq(&from_yaml(body, &options).unwrap()[0].document.to_json());
    }

    #[test]
    fn a_dropped_value_leaves_no_key() {
        check(
            r#"{"metadata": {"name": "a", "managedFields": [{"f:x": {}}], "uid": "u"}, "managedFields": 1}"#,
            &["metadata.managedFields"],
            &[],
            expect![[r#"{"metadata":{"name":"a","uid":"u"},"managedFields":1}"#]],
        );
    }

    #[test]
    fn names_with_dots_are_dropped() {
        check(
            r#"{"metadata": {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}", "a": "b"}}}"#,
            &[r#"metadata.annotations["kubectl.kubernetes.io/last-applied-configuration"]"#],
            &[],
            expect![[r#"{"metadata":{"annotations":{"a":"b"}}}"#]],
        );
    }

    #[test]
    fn values_are_dropped_at_any_depth() {
        check(
            r#"{"a": [{"b": [{"c": 1, "d": 2}, {"c": 3}]}, {"b": 4}, 5, [6]], "c": 7}"#,
            &["a[*].b[*].c"],
            &[],
            expect![[r#"{"a":[{"b":[{"d":2},{}]},{"b":4},5,[6]],"c":7}"#]],
        );
    }

    #[test]
    fn every_key_or_element_can_be_dropped() {
        check(
            r#"{"a": {"x": {"n": 1, "m": 2}, "y": {"n": 3}}, "b": [1, {"x": 2}, []]}"#,
            &["a.*.n", "b[*]"],
            &[],
            expect![[r#"{"a":{"x":{"m":2},"y":{}},"b":[]}"#]],
        );
    }

    #[test]
    fn paths_share_their_beginnings() {
        check(
            r#"{"a": {"b": {"x": 1, "y": 2, "z": 3}, "c": 4}}"#,
            &["a.b.x", "a.b.z", "a.c", "a.b.nothing.there"],
            &[],
            expect![[r#"{"a":{"b":{"y":2}}}"#]],
        );
    }

    #[test]
    fn a_masked_value_shows_its_shape_only() {
        check(
            r#"{"kind": "Secret", "data": {"password": "aHVudGVyMg==", "n": 1, "f": 1.5, "b": true, "z": null}}"#,
            &[],
            &["data.*"],
            expect![[r#"{"kind":"Secret","data":{"password":"***","n":"***","f":"***","b":"***","z":null}}"#]],
        );
    }

    #[test]
    fn masking_goes_all_the_way_down() {
        check(
            r#"{"data": {"a": [1, {"b": {"c": "x"}}, []], "d": {}}, "e": "visible"}"#,
            &[],
            &["data"],
            expect![[r#"{"data":{"a":["***",{"b":{"c":"***"}},[]],"d":{}},"e":"visible"}"#]],
        );
        check(
            r#"{"list": [{"value": {"x": 1}, "name": "n"}, {"value": 2}]}"#,
            &[],
            &["list[*].value"],
            expect![[r#"{"list":[{"value":{"x":"***"},"name":"n"},{"value":"***"}]}"#]],
        );
    }

    #[test]
    fn what_is_masked_may_be_dropped_too() {
        check(
            r#"{"data": {"a": 1, "b": {"c": 2, "d": 3}}}"#,
            &["data.a", "data.b.c"],
            &["data"],
            expect![[r#"{"data":{"b":{"d":"***"}}}"#]],
        );
    }

    #[test]
    fn the_whole_document_can_be_masked() {
        let mask = [Path::new([])];
        let options = Options { mask: &mask, ..Options::default() };
        let document = Document::parse(br#"{"a":[1]}"#, &options).unwrap();
        assert_eq!(document.to_json(), r#"{"a":["***"]}"#);
        assert_eq!(Document::parse(b"1", &options).unwrap().to_json(), r#""***""#);
    }

    #[test]
    fn masked_text_is_nowhere_in_the_document() {
        let mask = [Path::parse("data.*").unwrap()];
        let options = Options { mask: &mask, ..Options::default() };
        let document = Document::parse(br#"{"data":{"key":"a secret that no interner has"}}"#, &options).unwrap();
        assert!(!document.text().contains("secret"));
    }
}
