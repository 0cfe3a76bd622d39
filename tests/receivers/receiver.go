// A receiver for webhooks. The guide to verifying shows it from the first blank line on; tests/verification runs it.

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"path/filepath"
	"sync"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

var lock sync.Mutex

// store stores the event. It returns false if the event is stored already.
func store(id string, body []byte) (bool, error) {
	file, draft := filepath.Join("inbox", id), filepath.Join("inbox", "draft")
	lock.Lock()
	defer lock.Unlock()
	if _, err := os.Stat(file); err == nil {
		return false, nil
	}
	if err := os.WriteFile(draft, body, 0o600); err != nil {
		return false, err
	}
	return true, os.Rename(draft, file) // atomic
}

func work(id string, body []byte) {
	var event struct{ Type string }
	if err := json.Unmarshal(body, &event); err != nil {
		log.Fatal(err)
	}
	fmt.Println("accepted", id, event.Type)
}

func main() {
	webhook, err := standardwebhooks.NewWebhook(os.Getenv("WEBHOOK_SECRET"))
	if err != nil {
		log.Fatal(err)
	}
	receive := func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1024*1024)) // the raw bytes
		if err == nil {
			err = webhook.Verify(body, r.Header)
		}
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		id := r.Header.Get("webhook-id")
		isNew, err := store(id, body)
		if err != nil {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		if isNew {
			go work(id, body)
		}
		w.WriteHeader(http.StatusNoContent)
	}
	if err := os.MkdirAll("inbox", 0o700); err != nil {
		log.Fatal(err)
	}
	port := os.Getenv("PORT")
	if port == "" {
		port = "9000"
	}
	log.Fatal(http.ListenAndServe(":"+port, http.HandlerFunc(receive)))
}
