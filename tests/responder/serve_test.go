package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var (
	discard                  = log.New(io.Discard, "", 0)
	requestClientCertificate = &tls.Config{ClientAuth: tls.RequestClientCert}

	// A client that keeps connections may open a spare one, and a server that stops waits 5 s for its first request.
	client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
)

func newServer(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(newHandler("host-1", io.Discard))
	t.Cleanup(server.Close)
	return server.URL
}

func send(t *testing.T, method, url, body string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(content)
}

// check compares exactly, but for the newline at the end.
func check(t *testing.T, method, url, body string, status int, answer string) {
	t.Helper()
	gotStatus, gotAnswer := send(t, method, url, body)
	if gotStatus != status || strings.TrimSuffix(gotAnswer, "\n") != answer {
		t.Errorf("%s %s answered\n%d %s\nnot\n%d %s", method, url, gotStatus, gotAnswer, status, answer)
	}
}

func reviewOf(uid string) string {
	return fmt.Sprintf(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":%q}}`, uid)
}

func reviewedAs(response string) string {
	return fmt.Sprintf(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":%s}`, response)
}

// writeCertificate makes a self-signed certificate for 127.0.0.1 and returns it.
func writeCertificate(t *testing.T, cert, key string, serial int64) *x509.Certificate {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(serial),
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(time.Hour),
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA:                  true,
		BasicConstraintsValid: true,
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	rawKey, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{
		cert: {Type: "CERTIFICATE", Bytes: raw},
		key:  {Type: "PRIVATE KEY", Bytes: rawKey},
	} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	certificate, err := x509.ParseCertificate(raw)
	if err != nil {
		t.Fatal(err)
	}
	return certificate
}

// startServe runs the whole command, and returns the addresses it listens on and a function that asks it to stop and
// waits for its exit code.
func startServe(t *testing.T, stdout io.Writer, count int, arguments ...string) ([]string, func() int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	reader, stderr := io.Pipe()
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, append([]string{"serve"}, arguments...), stdout, stderr)
		stderr.Close()
	}()
	var addresses []string
	lines := bufio.NewScanner(reader)
	for len(addresses) < count && lines.Scan() {
		address, found := strings.CutPrefix(lines.Text(), "Listening on ")
		if !found {
			t.Fatalf("stderr has %q", lines.Text())
		}
		addresses = append(addresses, address)
	}
	// What the command says later must not block it.
	go io.Copy(io.Discard, reader)
	return addresses, func() int { cancel(); return <-code }
}

func TestPathsThatAreNotServedAreNotFound(t *testing.T) {
	url := newServer(t)
	check(t, "GET", url+"/", "", 200, "responder host-1")
	check(t, "GET", url+"/healthz", "", 200, "ok")
	for _, path := range []string{"/other", "/review/", "//review", "/healthz/more", "/./healthz"} {
		check(t, "GET", url+path, "", 404, "404 page not found")
	}
	check(t, "GET", url+"/review", "", 405, "Method Not Allowed")
}

func TestReviewIsAnsweredAsToldWithItsOwnUID(t *testing.T) {
	url := newServer(t)
	check(t, "POST", url+"/review?timeout=5s", reviewOf("a"), 200, reviewedAs(`{"uid":"a","allowed":true}`))

	denial := `{"allowed":false,"message":"<no>","code":418,"warnings":["w1","w2"],"delayMilliseconds":0,` +
		`"httpStatus":0,"body":""}`
	check(t, "PUT", url+"/answer", denial, 200, denial)
	check(t, "GET", url+"/answer", "", 200, denial)
	denied := `{"uid":%q,"allowed":false,"status":{"message":"<no>","code":418},"warnings":["w1","w2"]}`
	check(t, "POST", url+"/review", reviewOf("b"), 200, reviewedAs(fmt.Sprintf(denied, "b")))
	check(t, "POST", url+"/review", reviewOf("c"), 200, reviewedAs(fmt.Sprintf(denied, "c")))

	allowing := `{"allowed":true,"message":"","code":0,"warnings":[],"delayMilliseconds":0,"httpStatus":0,"body":""}`
	check(t, "PUT", url+"/answer", `{}`, 200, allowing)
	check(t, "POST", url+"/review", reviewOf("d"), 200, reviewedAs(`{"uid":"d","allowed":true}`))
}

func TestBrokenAnswerReplacesTheWholeAnswer(t *testing.T) {
	url := newServer(t)
	for _, broken := range []struct {
		answer string
		status int
		body   string
	}{
		{`{"httpStatus":503,"body":"out of order"}`, 503, "out of order"},
		{`{"httpStatus":500}`, 500, ""},
		{`{"httpStatus":200}`, 200, ""},
		{`{"body":"{\"not\":"}`, 200, `{"not":`},
	} {
		if status, body := send(t, "PUT", url+"/answer", broken.answer); status != 200 {
			t.Fatalf("%s was not taken: %s", broken.answer, body)
		}
		check(t, "POST", url+"/review", reviewOf("a"), broken.status, broken.body)
		check(t, "GET", url+"/healthz", "", 200, "ok")
	}
}

func TestAnswerThatCannotBeUsedIsRefusedAndChangesNothing(t *testing.T) {
	url := newServer(t)
	wrongType := "json: cannot unmarshal string into Go struct field answer.allowed of type bool"
	_, before := send(t, "GET", url+"/answer", "")
	for body, problem := range map[string]string{
		`{"allowed":false,"alowed":true}`:   `json: unknown field "alowed"`,
		`{"allowed":"no"}`:                  wrongType,
		`{"allowed":false} {}`:              "there is more than one JSON value",
		`{"allowed":false`:                  "unexpected EOF",
		`{"allowed":false,"httpStatus":99}`: "httpStatus is 99, not between 200 and 599",
		`{"delayMilliseconds":-1}`:          "delayMilliseconds is -1, less than 0",
	} {
		check(t, "PUT", url+"/answer", body, 400, "The answer cannot be used: "+problem+".")
	}
	check(t, "GET", url+"/answer", "", 200, strings.TrimSuffix(before, "\n"))
}

func TestMalformedReviewIsRefusedAndForgotten(t *testing.T) {
	url := newServer(t)
	for body, problem := range map[string]string{
		``:                                 "unexpected end of JSON input",
		`{}`:                               `it is a "" of ""`,
		`{"apiVersion":"v1","kind":"Pod"}`: `it is a "Pod" of "v1"`,
		`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}`: "it has no request",
		strings.Replace(reviewOf("a"), "/v1", "/v2", 1):                 `it is a "AdmissionReview" of "admission.k8s.io/v2"`,
		reviewOf(""): "its request has no uid",
	} {
		check(t, "POST", url+"/review", body, 400, "The body is not an AdmissionReview v1: "+problem+".")
	}
	check(t, "POST", url+"/review", strings.Repeat(" ", maxBody+1), 413, "The body is larger than 8388608 bytes.")
	check(t, "GET", url+"/reviews", "", 200, "[]")

	largest := reviewOf("a") + strings.Repeat(" ", maxBody-len(reviewOf("a")))
	check(t, "POST", url+"/review", largest, 200, reviewedAs(`{"uid":"a","allowed":true}`))
}

func TestReviewsAreShownAsReceivedUntilForgotten(t *testing.T) {
	url := newServer(t)
	request := `{"uid":"a","kind":{"group":"","version":"v1","kind":"Pod"},` +
		`"resource":{"group":"","version":"v1","resource":"pods"},"subResource":"status","operation":"UPDATE",` +
		`"namespace":"default","name":"api","dryRun":false,"userInfo":{"username":"me","groups":["g"]},` +
		`"object":{"z":12345678901234567890,"a":"<&>"},"oldObject":null}`
	review := fmt.Sprintf(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":%s}`, request)
	send(t, "POST", url+"/review", review)
	send(t, "POST", url+"/review", reviewOf("b"))
	check(t, "GET", url+"/reviews", "", 200, "["+request+`,{"uid":"b"}]`)
	check(t, "DELETE", url+"/reviews", "", 204, "")
	check(t, "GET", url+"/reviews", "", 200, "[]")
}

func TestOnlyTheLastReviewsAreKept(t *testing.T) {
	url := newServer(t)
	for i := range maxReviews + 3 {
		send(t, "POST", url+"/review", reviewOf(fmt.Sprint(i)))
	}
	_, body := send(t, "GET", url+"/reviews", "")
	var reviews []request
	if err := json.Unmarshal([]byte(body), &reviews); err != nil {
		t.Fatal(err)
	}
	if len(reviews) != 1000 || reviews[0].UID != "3" || reviews[999].UID != "1002" {
		t.Errorf("%d reviews are kept, from %s to %s", len(reviews), reviews[0].UID, reviews[len(reviews)-1].UID)
	}
}

func TestEachHandshakeShowsTheCertificateInTheFiles(t *testing.T) {
	folder := t.TempDir()
	cert, key := filepath.Join(folder, "tls.crt"), filepath.Join(folder, "tls.key")
	authorities := x509.NewCertPool()
	authorities.AddCert(writeCertificate(t, cert, key, 1))
	var stdout bytes.Buffer
	arguments := []string{"--http", "127.0.0.1:0", "--tls", "127.0.0.1:0", "--cert", cert, "--key", key}
	addresses, stop := startServe(t, &stdout, 2, arguments...)

	// The cache is what would hide the second certificate if the server resumed sessions.
	cache := tls.NewLRUClientSessionCache(1)
	for serial := range int64(3) {
		if serial > 0 {
			authorities.AddCert(writeCertificate(t, cert, key, serial+1))
		}
		transport := &http.Transport{
			TLSClientConfig:   &tls.Config{RootCAs: authorities, ClientSessionCache: cache},
			ForceAttemptHTTP2: true,
		}
		response, err := (&http.Client{Transport: transport}).Get(addresses[1] + "/healthz")
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, response.Body)
		response.Body.Close()
		transport.CloseIdleConnections()
		if shown := response.TLS.PeerCertificates[0].SerialNumber.Int64(); shown != serial+1 {
			t.Errorf("certificate %d is shown, not %d", shown, serial+1)
		}
	}

	check(t, "GET", addresses[0]+"/none", "", 404, "404 page not found")
	if code := stop(); code != exitOK {
		t.Errorf("exit code is %d", code)
	}
	expected := strings.Repeat("GET /healthz 200 HTTP/2.0\n", 3) + "GET /none 404 HTTP/1.1\n"
	if stdout.String() != expected {
		t.Errorf("the log is\n%snot\n%s", stdout.String(), expected)
	}
}

func TestReviewUnderWayIsAnsweredBeforeStopping(t *testing.T) {
	var stdout bytes.Buffer
	addresses, stop := startServe(t, &stdout, 1, "--http", "127.0.0.1:0")
	send(t, "PUT", addresses[0]+"/answer", `{"delayMilliseconds":500}`)
	started := time.Now()
	answered := make(chan string)
	go func() {
		var answer bytes.Buffer
		run(t.Context(), []string{"call", addresses[0] + "/review", "--data", reviewOf("a")}, &answer, &answer)
		answered <- answer.String()
	}()
	for {
		if _, reviews := send(t, "GET", addresses[0]+"/reviews", ""); reviews != "[]\n" {
			break
		}
	}
	stopped := make(chan int)
	go func() { stopped <- stop() }()

	expected := "200 " + reviewedAs(`{"uid":"a","allowed":true}`) + "\n"
	if answer := <-answered; answer != expected {
		t.Errorf("the answer is %q, not %q", answer, expected)
	}
	if taken := time.Since(started); taken < 500*time.Millisecond {
		t.Errorf("the answer took %s", taken)
	}
	if code := <-stopped; code != exitOK {
		t.Errorf("exit code is %d", code)
	}
}

func TestServeFailsWhenItCannotStart(t *testing.T) {
	for _, failure := range []struct {
		arguments string
		problem   string
	}{
		{"serve --http 127.0.0.1:none", "responder: listen tcp: lookup tcp/none"},
		{"serve --tls :0 --cert /none --key /none", "responder: could not load the certificate: open /none"},
	} {
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), strings.Fields(failure.arguments), &stdout, &stderr)
		if code != exitFailure || !strings.HasPrefix(stderr.String(), failure.problem) {
			t.Errorf("%s ended with %d and %q", failure.arguments, code, stderr.String())
		}
	}
}
