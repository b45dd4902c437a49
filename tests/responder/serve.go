// Serve answers admission reviews as it was last told to, and remembers the reviews it received.

package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path"
	"slices"
	"sync"
	"time"
)

const (
	// The API server sends objects of at most 3 MiB, and an update carries two.
	maxBody = 8 << 20

	// Reviews kept. A test that forgets to delete them must not fill the memory of the pod.
	maxReviews = 1000

	// Time that requests under way have once asked to stop. A pod has 30 s by default before it is killed.
	stopTimeout = 10 * time.Second

	// What the log shows for a caller that left before it was answered. Nobody receives it.
	statusCallerLeft = 499
)

// answer is how reviews are answered. Fields left out by who sets it have the value of defaultAnswer.
type answer struct {
	Allowed           bool     `json:"allowed"`
	Message           string   `json:"message"`
	Code              int      `json:"code"`
	Warnings          []string `json:"warnings"`
	DelayMilliseconds int      `json:"delayMilliseconds"`
	// HTTPStatus and Body replace the whole answer when either is set, to play a broken server.
	HTTPStatus int    `json:"httpStatus"`
	Body       string `json:"body"`
}

// review is the AdmissionReview v1 that comes in. The one that goes out is reviewed.
type review struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Request    *request `json:"request"`
}

// request is the part of a review that tests ask for. Objects stay as they came: a number that passes through a float
// is another number.
type request struct {
	UID         string          `json:"uid"`
	Kind        json.RawMessage `json:"kind,omitempty"`
	Resource    json.RawMessage `json:"resource,omitempty"`
	SubResource string          `json:"subResource,omitempty"`
	Operation   string          `json:"operation,omitempty"`
	Namespace   string          `json:"namespace,omitempty"`
	Name        string          `json:"name,omitempty"`
	DryRun      *bool           `json:"dryRun,omitempty"`
	UserInfo    json.RawMessage `json:"userInfo,omitempty"`
	Object      json.RawMessage `json:"object,omitempty"`
	OldObject   json.RawMessage `json:"oldObject,omitempty"`
}

type reviewed struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Response   response `json:"response"`
}

type response struct {
	UID      string   `json:"uid"`
	Allowed  bool     `json:"allowed"`
	Status   *status  `json:"status,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
}

type status struct {
	Message string `json:"message,omitempty"`
	Code    int    `json:"code,omitempty"`
}

// responder is the state behind the handler, shared by the plain and the TLS server.
type responder struct {
	hostname string

	mutex sync.Mutex
	// Written by PUT /answer.
	answer answer
	// Written by POST /review and DELETE /reviews, newest last.
	reviews []request
}

// recorder keeps the status of an answer for the log.
type recorder struct {
	http.ResponseWriter
	status int
}

// server is one address to serve, with a TLS configuration or without.
type server struct {
	address string
	tls     *tls.Config
}

func serve(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("serve", flag.ContinueOnError)
	// The error is printed with the usage of the whole program.
	flags.SetOutput(io.Discard)
	plainAddress := flags.String("http", "", "")
	tlsAddress := flags.String("tls", "", "")
	cert := flags.String("cert", "", "")
	key := flags.String("key", "", "")
	if err := flags.Parse(args); err != nil {
		return misused(stderr, err.Error())
	}
	switch {
	case flags.NArg() > 0:
		return misused(stderr, fmt.Sprintf("serve does not take %q", flags.Arg(0)))
	case *plainAddress == "" && *tlsAddress == "":
		return misused(stderr, "serve needs --http, --tls or both")
	case (*tlsAddress == "") != (*cert == "") || (*tlsAddress == "") != (*key == ""):
		return misused(stderr, "--tls, --cert and --key need each other")
	}

	var servers []server
	if *plainAddress != "" {
		servers = append(servers, server{address: *plainAddress})
	}
	if *tlsAddress != "" {
		// A wrong path is better seen when the pod starts than at its first handshake.
		if _, err := tls.LoadX509KeyPair(*cert, *key); err != nil {
			return failed(stderr, fmt.Errorf("could not load the certificate: %w", err))
		}
		servers = append(servers, server{address: *tlsAddress, tls: tlsConfig(*cert, *key)})
	}
	hostname, err := os.Hostname()
	if err != nil {
		return failed(stderr, fmt.Errorf("could not read the host name: %w", err))
	}
	if err := serveAll(ctx, servers, newHandler(hostname, stdout), stderr); err != nil {
		return failed(stderr, err)
	}
	return exitOK
}

// serveAll returns when one of the servers fails or, once ctx ends, when the requests under way are answered.
func serveAll(ctx context.Context, servers []server, handler http.Handler, stderr io.Writer) error {
	// Standard output has one line for each request and nothing else.
	logger := log.New(stderr, "", 0)
	failures := make(chan error, len(servers))
	var running []*http.Server
	defer func() {
		for _, server := range running {
			server.Close()
		}
	}()
	for _, server := range servers {
		listener, err := net.Listen("tcp", server.address)
		if err != nil {
			return err
		}
		// There is no limit on writing: how long an answer takes is for the test to tell.
		httpServer := &http.Server{
			Handler:           handler,
			TLSConfig:         server.tls,
			ReadHeaderTimeout: 10 * time.Second,
			ErrorLog:          logger,
		}
		running = append(running, httpServer)
		if server.tls == nil {
			logger.Printf("Listening on http://%s", listener.Addr())
			go func() { failures <- httpServer.Serve(listener) }()
		} else {
			logger.Printf("Listening on https://%s", listener.Addr())
			go func() { failures <- httpServer.ServeTLS(listener, "", "") }()
		}
	}

	select {
	case err := <-failures:
		return err
	case <-ctx.Done():
	}
	// What asked to stop has ended ctx, so the time to stop in is counted from a fresh one.
	stopping, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	var stopped sync.WaitGroup
	errs := make([]error, len(running))
	for i, server := range running {
		stopped.Go(func() { errs[i] = server.Shutdown(stopping) })
	}
	stopped.Wait()
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("could not stop in %s: %w", stopTimeout, err)
	}
	return nil
}

// tlsConfig reads the files at each handshake: no watch and no modification time can then hide a rotation from a test.
func tlsConfig(cert, key string) *tls.Config {
	return &tls.Config{
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(cert, key)
			return &pair, err
		},
		// A resumed session does not ask for the certificate again.
		SessionTicketsDisabled: true,
	}
}

func newHandler(hostname string, out io.Writer) http.Handler {
	responder := &responder{hostname: hostname, answer: defaultAnswer()}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", responder.greet)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok") })
	mux.HandleFunc("POST /review", responder.review)
	mux.HandleFunc("GET /answer", responder.showAnswer)
	mux.HandleFunc("PUT /answer", responder.setAnswer)
	mux.HandleFunc("GET /reviews", responder.listReviews)
	mux.HandleFunc("DELETE /reviews", responder.forgetReviews)

	// A logger, because it writes the lines of concurrent requests one after the other.
	logger := log.New(out, "", 0)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// The limit is given the server's own writer, which is how it has the connection closed.
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		recorder := &recorder{ResponseWriter: w, status: http.StatusOK}
		if path.Clean(r.URL.Path) == r.URL.Path {
			mux.ServeHTTP(recorder, r)
		} else {
			// The mux would send the caller to the clean path, and a test would not see that it built a wrong one.
			http.NotFound(recorder, r)
		}
		logger.Printf("%s %s %d %s", r.Method, r.URL.EscapedPath(), recorder.status, r.Proto)
	})
}

func defaultAnswer() answer {
	return answer{Allowed: true, Warnings: []string{}}
}

func (r *recorder) WriteHeader(status int) {
	r.status = status
	r.ResponseWriter.WriteHeader(status)
}

func (s *responder) greet(w http.ResponseWriter, _ *http.Request) {
	fmt.Fprintf(w, "responder %s\n", s.hostname)
}

func (s *responder) review(w http.ResponseWriter, r *http.Request) {
	body, ok := readBody(w, r)
	if !ok {
		return
	}
	request, err := parseReview(body)
	if err != nil {
		http.Error(w, fmt.Sprintf("The body is not an AdmissionReview v1: %v.", err), http.StatusBadRequest)
		return
	}

	// Remember before the delay: a test that waits for the review must not wait for its answer too.
	answer := s.remember(*request)
	select {
	case <-time.After(time.Duration(answer.DelayMilliseconds) * time.Millisecond):
	case <-r.Context().Done():
		w.WriteHeader(statusCallerLeft)
		return
	}
	if answer.HTTPStatus != 0 || answer.Body != "" {
		// The type is still the right one, so that what the caller trips over is what the test broke.
		w.Header().Set("Content-Type", "application/json")
		if answer.HTTPStatus != 0 {
			w.WriteHeader(answer.HTTPStatus)
		}
		io.WriteString(w, answer.Body)
		return
	}
	writeJSON(w, respond(answer, request.UID))
}

func (s *responder) showAnswer(w http.ResponseWriter, _ *http.Request) {
	s.mutex.Lock()
	answer := s.answer
	s.mutex.Unlock()
	writeJSON(w, answer)
}

func (s *responder) setAnswer(w http.ResponseWriter, r *http.Request) {
	body, ok := readBody(w, r)
	if !ok {
		return
	}
	answer, err := parseAnswer(body)
	if err != nil {
		http.Error(w, fmt.Sprintf("The answer cannot be used: %v.", err), http.StatusBadRequest)
		return
	}
	s.mutex.Lock()
	s.answer = answer
	s.mutex.Unlock()
	writeJSON(w, answer)
}

func (s *responder) listReviews(w http.ResponseWriter, _ *http.Request) {
	// Copied, because a review that comes in while a slow caller reads moves the others; never nil, which would be null.
	s.mutex.Lock()
	reviews := append([]request{}, s.reviews...)
	s.mutex.Unlock()
	writeJSON(w, reviews)
}

func (s *responder) forgetReviews(w http.ResponseWriter, _ *http.Request) {
	s.mutex.Lock()
	s.reviews = nil
	s.mutex.Unlock()
	w.WriteHeader(http.StatusNoContent)
}

// remember keeps a request and returns how to answer it.
func (s *responder) remember(request request) answer {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.reviews = append(s.reviews, request)
	if excess := len(s.reviews) - maxReviews; excess > 0 {
		s.reviews = slices.Delete(s.reviews, 0, excess)
	}
	return s.answer
}

func parseReview(body []byte) (*request, error) {
	var review review
	if err := json.Unmarshal(body, &review); err != nil {
		return nil, err
	}
	switch {
	case review.APIVersion != "admission.k8s.io/v1" || review.Kind != "AdmissionReview":
		return nil, fmt.Errorf("it is a %q of %q", review.Kind, review.APIVersion)
	case review.Request == nil:
		return nil, errors.New("it has no request")
	case review.Request.UID == "":
		return nil, errors.New("its request has no uid")
	}
	return review.Request, nil
}

func parseAnswer(body []byte) (answer, error) {
	answer := defaultAnswer()
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&answer); err != nil {
		return answer, err
	}
	// A decoder stops after one value, and what follows would be lost in silence.
	if _, err := decoder.Token(); err != io.EOF {
		return answer, errors.New("there is more than one JSON value")
	}
	switch {
	case answer.DelayMilliseconds < 0:
		return answer, fmt.Errorf("delayMilliseconds is %d, less than 0", answer.DelayMilliseconds)
	case answer.HTTPStatus != 0 && (answer.HTTPStatus < 200 || answer.HTTPStatus > 599):
		// A status below 200 is sent ahead of another one, and answers nothing.
		return answer, fmt.Errorf("httpStatus is %d, not between 200 and 599", answer.HTTPStatus)
	}
	return answer, nil
}

func respond(answer answer, uid string) reviewed {
	response := response{UID: uid, Allowed: answer.Allowed, Warnings: answer.Warnings}
	if answer.Message != "" || answer.Code != 0 {
		response.Status = &status{Message: answer.Message, Code: answer.Code}
	}
	return reviewed{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview", Response: response}
}

// readBody answers the request itself when it returns false.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, bool) {
	body, err := io.ReadAll(r.Body)
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		http.Error(w, fmt.Sprintf("The body is larger than %d bytes.", tooLarge.Limit), http.StatusRequestEntityTooLarge)
	case err != nil:
		http.Error(w, fmt.Sprintf("The body cannot be read: %v.", err), http.StatusBadRequest)
	}
	return body, err == nil
}

func writeJSON(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	encoder := json.NewEncoder(w)
	// Objects are shown as received, not made safe for a web page.
	encoder.SetEscapeHTML(false)
	// The only error left is a caller that went away, and it cannot be told.
	_ = encoder.Encode(value)
}
