package ports

import (
	"encoding/json"
	"net/netip"
	"reflect"
	"testing"
)

// JSON must keep all facts, so that saved ones are judged like the machine's own.
func TestFactsJSON(t *testing.T) {
	var all, back Facts
	fill(t, reflect.ValueOf(&all).Elem())
	b, err := json.Marshal(all)
	if err == nil {
		err = json.Unmarshal(b, &back)
	}
	if err != nil || !reflect.DeepEqual(all, back) {
		t.Errorf("%v\n%+v\n%+v", err, all, back)
	}
	var none Facts
	if b, err = json.Marshal(none); err == nil {
		err = json.Unmarshal(b, &none)
	}
	if err != nil || !reflect.DeepEqual(none, Facts{}) {
		t.Errorf("%v %+v", err, none)
	}
}

// fill sets each field of v to a value other than zero.
func fill(t *testing.T, v reflect.Value) {
	t.Helper()
	switch x := v.Addr().Interface().(type) {
	case *netip.Addr:
		*x = addr("fd00::2")
		return
	case *netip.AddrPort:
		*x = addrPort("[fd00::2]:80")
		return
	case *netip.Prefix:
		*x = netip.MustParsePrefix("fd00::2/64")
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() && f.Tag.Get("json") != "-" {
				fill(t, v.Field(i))
			}
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(t, v.Index(0))
	case reflect.Array:
		for i := range v.Len() {
			fill(t, v.Index(i))
		}
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(t, key)
		fill(t, value)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem())
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Float64:
		v.SetFloat(1)
	case reflect.Int, reflect.Int64:
		v.SetInt(1)
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(1)
	default:
		t.Fatalf("no value for %s", v.Type())
	}
}
