// The encoding of values. JSON alone would not tell a whole number from another, nor keep keys that are no text.

package main

import (
	"encoding/json"
	"math"
	"reflect"
	"sort"
	"strconv"
	"time"
)

// encode writes nil, numbers, maps and times as objects with one key, so that none is taken for another: {"nil":true},
// {"i":"1"}, {"f":"1.5"}, {"m":[[key,value],…]} in the order of the encoded keys, {"time":"…"} in UTC, {"dur":"…"} in
// nanoseconds, {"opaque":"type"} for what an expression cannot look into.
func encode(value any) any {
	if value == nil {
		return tagged("nil", true)
	}
	switch value := value.(type) {
	case time.Time:
		return tagged("time", value.UTC().Format(time.RFC3339Nano))
	case time.Duration:
		return tagged("dur", strconv.FormatInt(int64(value), 10))
	}
	reflected := reflect.ValueOf(value)
	switch reflected.Kind() {
	case reflect.Bool:
		return reflected.Bool()
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return tagged("i", strconv.FormatInt(reflected.Int(), 10))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return tagged("i", strconv.FormatUint(reflected.Uint(), 10))
	case reflect.Float32, reflect.Float64:
		return tagged("f", encodeFloat(reflected.Float()))
	case reflect.String:
		return reflected.String()
	case reflect.Slice, reflect.Array:
		elements := make([]any, reflected.Len())
		for i := range elements {
			elements[i] = encode(reflected.Index(i).Interface())
		}
		return elements
	case reflect.Map:
		return tagged("m", encodeMap(reflected))
	}
	return tagged("opaque", reflected.Type().String())
}

func tagged(tag string, value any) any {
	return map[string]any{tag: value}
}

func encodeFloat(value float64) string {
	if math.IsNaN(value) {
		return "NaN"
	}
	return strconv.FormatFloat(value, 'g', -1, 64)
}

func encodeMap(reflected reflect.Value) [][2]any {
	type entry struct {
		sort string
		pair [2]any
	}
	entries := make([]entry, 0, reflected.Len())
	for _, key := range reflected.MapKeys() {
		encoded := encode(key.Interface())
		text, err := json.Marshal(encoded)
		if err != nil {
			panic(err)
		}
		entries = append(entries, entry{string(text), [2]any{encoded, encode(reflected.MapIndex(key).Interface())}})
	}
	sort.Slice(entries, func(i, j int) bool { return entries[i].sort < entries[j].sort })
	pairs := make([][2]any, len(entries))
	for i, entry := range entries {
		pairs[i] = entry.pair
	}
	return pairs
}

// numbers replaces the numbers in a decoded value.
func numbers(value any) any {
	switch value := value.(type) {
	case json.Number:
		if whole, err := value.Int64(); err == nil {
			return whole
		}
		// Out of range is infinite, as it is in the API server.
		float, _ := value.Float64()
		return float
	case []any:
		for i := range value {
			value[i] = numbers(value[i])
		}
	case map[string]any:
		for key := range value {
			value[key] = numbers(value[key])
		}
	}
	return value
}
