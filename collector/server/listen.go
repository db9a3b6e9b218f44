package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"syscall"
)

// Listen opens a TCP listener on address. Where the port is taken, the error names the process that has it, if
// the system tells us, and says which address to pass with flag instead; flag is the caller's, as "--listen".
func Listen(ctx context.Context, address, flag string) (net.Listener, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", address)
	switch {
	case err == nil:
		return listener, nil
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, inUse(ctx, address, flag)
	case errors.Is(err, syscall.EACCES):
		return nil, fmt.Errorf("%s may not be listened on by this user; pass a port above 1023 with %s", address, flag)
	default:
		return nil, fmt.Errorf("cannot listen on %s, pass another address with %s: %w", address, flag, err)
	}
}

func inUse(ctx context.Context, address, flag string) error {
	holder := "another process"
	host, service, _ := net.SplitHostPort(address)
	if port, err := net.DefaultResolver.LookupPort(ctx, "tcp", service); err == nil {
		if process, found := processListening(port); found {
			holder = process.String()
		}
		if free, found := freePort(ctx, host, port); found {
			return fmt.Errorf("%s is in use by %s; stop it or pass another address: %s %s",
				address, holder, flag, net.JoinHostPort(host, strconv.Itoa(free)))
		}
	}
	return fmt.Errorf("%s is in use by %s; stop it or pass another address with %s", address, holder, flag)
}

// freePort looks for a port that can be listened on a little above the one that cannot.
func freePort(ctx context.Context, host string, port int) (int, bool) {
	var config net.ListenConfig
	for candidate := port + 1; candidate <= min(port+20, 65535); candidate++ {
		listener, err := config.Listen(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(candidate)))
		if err == nil {
			return candidate, listener.Close() == nil
		}
	}
	return 0, false
}
