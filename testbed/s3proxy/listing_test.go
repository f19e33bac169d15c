package main

import (
	"encoding/xml"
	"fmt"
	"math/rand"
	"net/http/httptest"
	"net/url"
	"os"
	"reflect"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"
)

var shapes = []string{
	"b=files:1", "b=files:11", "b=files:37,order:reverse", "b=dirs:1,files:3", "b=dirs:3,files:12", "b=dirs:13,files:5,order:reverse", "b=dirs:112,files:2",
}

func synthetic(t testing.TB, text string) *syntheticBucket {
	bucket, err := parseSynthetic(text)
	if err != nil {
		t.Fatal(err)
	}
	return bucket
}

func (b *syntheticBucket) allKeys() []string {
	keys := make([]string, b.keys.size())
	for i := range keys {
		keys[i] = string(b.keys.appendKey(nil, i))
	}
	return keys
}

func TestKeysAreInOrderAndFound(t *testing.T) {
	if keys := synthetic(t, "b=dirs:2,files:2").allKeys(); !reflect.DeepEqual(keys, []string{
		"set/dir=0000/part-00000.txt", "set/dir=0000/part-00001.txt", "set/dir=0001/part-00000.txt", "set/dir=0001/part-00001.txt",
	}) {
		t.Error(keys)
	}
	if key := synthetic(t, "b=files:100000000").keys.appendKey(nil, 7); string(key) != "set/part-00000007.txt" {
		t.Errorf("%s", key)
	}
	for _, shape := range shapes {
		b := synthetic(t, shape)
		keys := b.allKeys()
		if !sort.StringsAreSorted(keys) {
			t.Errorf("%s: not sorted", shape)
		}
		for i, key := range keys {
			if index, found := b.keys.search(key); index != i || !found {
				t.Errorf("%s: %s is found at %d", shape, key, index)
			}
			if index, found := b.keys.search(key + "0"); index != i+1 || found {
				t.Errorf("%s: what follows %s is found at %d", shape, key, index)
			}
		}
	}
}

func TestKeysThatShareTheirFirstBytesAreARange(t *testing.T) {
	for _, shape := range shapes {
		b := synthetic(t, shape)
		keys := b.allKeys()
		for i, key := range keys {
			for length := 0; length <= len(key); length++ {
				first := sort.Search(len(keys), func(k int) bool { return keys[k][:length] >= key[:length] })
				end := sort.Search(len(keys), func(k int) bool { return keys[k][:length] > key[:length] })
				if f, e := b.keys.sharing(i, length); f != first || e != end {
					t.Fatalf("%s: %q is shared by %d..%d, not %d..%d", shape, key[:length], f, e, first, end)
				}
			}
		}
	}
}

// An entry is a key or a common prefix.
type entry struct {
	name     string
	isPrefix bool
}

// expectedEntries is the model: all entries of a listing, from all keys in the order of the bucket.
func expectedEntries(keys []string, prefix, delimiter, startAfter string) []entry {
	entries := []entry{}
	for _, key := range keys {
		if !strings.HasPrefix(key, prefix) || key <= startAfter {
			continue
		}
		found := entry{key, false}
		if before, _, isCut := strings.Cut(key[len(prefix):], delimiter); delimiter != "" && isCut {
			found = entry{prefix + before + delimiter, true}
		}
		if found.isPrefix && found.name == startAfter || len(entries) > 0 && entries[len(entries)-1] == found {
			continue
		}
		entries = append(entries, found)
	}
	return entries
}

type listResult struct {
	Name, Prefix, Delimiter, StartAfter, ContinuationToken, NextContinuationToken, EncodingType string
	KeyCount, MaxKeys                                                                           int
	IsTruncated                                                                                 bool
	Contents                                                                                    []struct {
		Key, LastModified, ETag, StorageClass string
		Size                                  int64
	}
	CommonPrefixes []struct{ Prefix string }
}

func requestPage(t testing.TB, b *syntheticBucket, query url.Values) listResult {
	recorder := httptest.NewRecorder()
	b.ServeHTTP(recorder, httptest.NewRequest("GET", "/b?list-type=2&"+query.Encode(), nil))
	var result listResult
	if err := xml.Unmarshal(recorder.Body.Bytes(), &result); err != nil || recorder.Code != 200 {
		t.Fatalf("%s: %d %v %s", query.Encode(), recorder.Code, err, recorder.Body)
	}
	if length := recorder.Header().Get("Content-Length"); length != strconv.Itoa(recorder.Body.Len()) {
		t.Fatalf("%s: %s bytes, not %d", query.Encode(), length, recorder.Body.Len())
	}
	return result
}

// entriesOf are the entries of a page, in the order in which the bucket has them.
func entriesOf(t *testing.T, page listResult, order listingOrder) []entry {
	names := []entry{}
	add := func(name string, isPrefix bool) {
		if page.EncodingType == "url" {
			if strings.Contains(name, "=") {
				t.Fatalf("%s is not encoded", name)
			}
			name, _ = url.QueryUnescape(name)
		}
		names = append(names, entry{name, isPrefix})
	}
	for _, object := range page.Contents {
		add(object.Key, false)
	}
	for _, prefix := range page.CommonPrefixes {
		add(prefix.Prefix, true)
	}
	sort.SliceStable(names, func(i, j int) bool { return (names[i].name < names[j].name) == (order == byKey) })
	return names
}

// someName is often a key, the first part of one, or next to one.
func someName(random *rand.Rand, keys []string) string {
	key := keys[random.Intn(len(keys))]
	switch random.Intn(5) {
	case 0:
		return ""
	case 1:
		return key
	case 2:
		return key[:random.Intn(len(key))] + string(rune("!/0=z"[random.Intn(5)]))
	case 3:
		return key[:1+strings.LastIndex(key, "/")]
	}
	return key[:random.Intn(len(key))]
}

func TestPagesAreThoseOfAListOfAllKeys(t *testing.T) {
	seed := time.Now().UnixNano()
	if text := os.Getenv("MILLSTREAM_SEED"); text != "" {
		seed, _ = strconv.ParseInt(text, 10, 64)
	}
	t.Logf("MILLSTREAM_SEED=%d", seed)
	random := rand.New(rand.NewSource(seed))
	for _, shape := range shapes {
		b := synthetic(t, shape)
		keys := b.allKeys()
		if b.order == reversed {
			sort.Sort(sort.Reverse(sort.StringSlice(keys)))
		}
		for try := 0; try < 300; try++ {
			query := url.Values{}
			for name, value := range map[string]string{
				"prefix": someName(random, keys), "delimiter": []string{"", "/", "/", "-", "=", "0", "part", ".txt"}[random.Intn(8)],
				"start-after": someName(random, keys), "max-keys": []string{"", "1", "2", "3", "10", "5000"}[random.Intn(6)],
				"encoding-type": []string{"", "url"}[random.Intn(2)],
			} {
				if value != "" {
					query.Set(name, value)
				}
			}
			comparePages(t, random, b, keys, query)
		}
	}
}

// comparePages requests all pages, continuing by token or, where there is an order, by the last name.
func comparePages(t *testing.T, random *rand.Rand, b *syntheticBucket, keys []string, query url.Values) {
	t.Helper()
	expected := expectedEntries(keys, query.Get("prefix"), query.Get("delimiter"), query.Get("start-after"))
	what := query.Encode()
	limit, _ := strconv.Atoi(query.Get("max-keys"))
	if limit == 0 || limit > maxKeysOfPage {
		limit = maxKeysOfPage
	}
	for rest := expected; ; {
		page := requestPage(t, b, query)
		names := entriesOf(t, page, b.order)
		count := min(limit, len(rest))
		if fmt.Sprint(names) != fmt.Sprint(rest[:count]) || page.KeyCount != count || page.MaxKeys != limit {
			t.Fatalf("%d keys, %s, then %s: %+v, not %v", len(keys), what, query.Encode(), page, rest[:count])
		}
		if rest = rest[count:]; page.IsTruncated != (len(rest) > 0) || page.IsTruncated != (page.NextContinuationToken != "") {
			t.Fatalf("%d keys, %s, then %s: truncated %v, but %v remain", len(keys), what, query.Encode(), page.IsTruncated, rest)
		}
		if !page.IsTruncated {
			return
		}
		if b.order == byKey && random.Intn(2) == 0 {
			query.Del("continuation-token")
			query.Set("start-after", names[count-1].name)
		} else {
			query.Set("continuation-token", page.NextContinuationToken)
		}
	}
}

func TestAPageDescribesItsObjectsAndTheRequest(t *testing.T) {
	b := synthetic(t, "b=dirs:2,files:3,bytes:20")
	page := requestPage(t, b, url.Values{"prefix": {"set/<&"}, "start-after": {"a b"}, "delimiter": {"/"}, "encoding-type": {"url"}})
	if page.Name != "b" || page.Prefix != "set/%3C%26" || page.StartAfter != "a+b" || page.Delimiter != "/" || page.MaxKeys != 1000 {
		t.Errorf("%+v", page)
	}
	if page = requestPage(t, b, url.Values{"prefix": {"set/<&"}}); page.Prefix != "set/<&" || page.KeyCount != 0 {
		t.Errorf("%+v", page)
	}
	if page = requestPage(t, b, url.Values{"max-keys": {"0"}}); page.KeyCount != 0 || page.IsTruncated {
		t.Errorf("%+v", page)
	}
	object := requestPage(t, b, url.Values{"start-after": {"set/dir=0001/part-00000.txt"}}).Contents[0]
	recorder := httptest.NewRecorder()
	b.ServeHTTP(recorder, httptest.NewRequest("HEAD", "/b/"+object.Key, nil))
	if object.Key != "set/dir=0001/part-00001.txt" || object.LastModified != "2024-01-01T00:00:04.000Z" || object.Size != 20 ||
		object.StorageClass != "STANDARD" || object.ETag != recorder.Header().Get("ETag") {
		t.Errorf("%+v, %v", object, recorder.Header())
	}
}

func TestWrongListingsAreRefused(t *testing.T) {
	b := synthetic(t, "b=files:3")
	for _, query := range []string{"max-keys=x", "max-keys=-1", "encoding-type=xml", "continuation-token=", "continuation-token=1%2B%2F0-4%3D", "continuation-token=x"} {
		recorder := httptest.NewRecorder()
		b.ServeHTTP(recorder, httptest.NewRequest("GET", "/b?list-type=2&"+query, nil))
		if recorder.Code != 400 || !strings.Contains(recorder.Body.String(), "<Code>InvalidArgument</Code>") {
			t.Errorf("%s: %d %s", query, recorder.Code, recorder.Body)
		}
	}
}

func BenchmarkPage(b *testing.B) {
	for name, query := range map[string]string{"keys": "", "prefixes": "&delimiter=/&prefix=set/"} {
		b.Run(name, func(b *testing.B) {
			bucket := synthetic(b, "b=dirs:1000,files:1000")
			r := httptest.NewRequest("GET", "/b?list-type=2&start-after=set/dir=0000/part-00500.txt"+query, nil)
			b.ReportAllocs()
			for i := 0; i < b.N; i++ {
				bucket.ServeHTTP(lost{map[string][]string{}}, r)
			}
		})
	}
}
