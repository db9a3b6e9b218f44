// Command clients sends events by analytics-go, used as its documentation says, with no other setting than the host. It waits
// until the client is done with each event, and says on standard output how many it has given up.
//
//	clients HOST WRITE_KEY EVENTS
package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"gopkg.in/segmentio/analytics-go.v3"
)

func main() {
	if err := send(os.Stdout, os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "clients:", err)
		os.Exit(1)
	}
}

// outcome counts the events that the client is done with, and those of them that it has given up.
type outcome struct{ done, failed atomic.Int64 }

// Success is what the client calls for each event that was taken.
func (o *outcome) Success(analytics.Message) { o.done.Add(1) }

// Failure is what the client calls for each event that it gives up.
func (o *outcome) Failure(analytics.Message, error) {
	o.failed.Add(1)
	o.done.Add(1)
}

func send(out io.Writer, host, writeKey, count string) error {
	events, err := strconv.Atoi(count)
	if err != nil {
		return err
	}
	seen := new(outcome)
	client, err := analytics.NewWithConfig(writeKey, analytics.Config{Endpoint: host, Callback: seen})
	if err != nil {
		return err
	}
	for i := range events {
		err := client.Enqueue(analytics.Track{
			UserId: fmt.Sprintf("visitor-%d", i), Event: "Order Completed",
			Properties: analytics.NewProperties().SetOrderId(fmt.Sprintf("order-%d", i)).SetTotal(12.5).SetCurrency("EUR").
				SetProducts(analytics.Product{ID: "a", Price: 12.5}),
		})
		if err != nil {
			return err
		}
		if i%100 == 99 {
			<-time.After(20 * time.Millisecond) // what happens meanwhile is to hit it in the middle
		}
	}
	for seen.done.Load() < int64(events) { // else Close drops what is being sent again
		<-time.After(10 * time.Millisecond)
	}
	if err := client.Close(); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "{\"failed\":%d}\n", seen.failed.Load())
	return err
}
