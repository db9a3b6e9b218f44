package stream

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"regexp"
	"strconv"

	"github.com/redis/go-redis/v9"
)

//go:embed weir.lua
var library string

const libraryName = "weir"

// The functions of weir.lua.
const (
	functionAppend       = "weir_append"
	functionAllow        = "weir_allow"
	functionEnsureGroup  = "weir_ensure_group"
	functionDestroyGroup = "weir_destroy_group"
	functionTake         = "weir_take"
	functionConclude     = "weir_conclude"
	functionRefund       = "weir_refund"
	functionReplay       = "weir_replay"
	functionReplayPast   = "weir_replay_past"
	functionRetain       = "weir_retain"
	functionArchiveBegin = "weir_archive_begin"
	functionArchiveNote  = "weir_archive_note"
	functionLook         = "weir_look"
	functionSeal         = "weir_seal"
	functionDrop         = "weir_drop"
	functionRequests     = "weir_requests"
	functionErase        = "weir_erase"
	functionReplace      = "weir_replace_records"
	functionHide         = "weir_hide"
	functionCount        = "weir_count"
)

var libraryVersion = regexp.MustCompile(`(?m)^local VERSION = (\d+)$`)

// Load puts the function library into every primary node that lacks it, has an older version, or has other
// code under the same version. A newer version stays: its functions serve older callers too. The user needs the
// FUNCTION command; without it the error is [ErrDenied], and where Redis has none [ErrFunctions].
func (c *Client) Load(ctx context.Context) error {
	ours, err := versionOf(library)
	if err != nil {
		return err
	}
	return c.eachPrimary(ctx, func(ctx context.Context, node redis.Cmdable) error {
		loaded, err := node.FunctionList(ctx, redis.FunctionListQuery{LibraryNamePattern: libraryName, WithCode: true}).Result()
		if err != nil {
			return functionError(err)
		}
		if len(loaded) > 0 {
			theirs, err := versionOf(loaded[0].Code)
			if err != nil {
				return &Problem{ErrLibrary, "it has another of the name " + libraryName}
			}
			if theirs > ours || loaded[0].Code == library {
				return nil
			}
		}
		if err := node.FunctionLoadReplace(ctx, library).Err(); err != nil {
			return functionError(err)
		}
		return nil
	})
}

// functionError tells apart why there are no functions.
func functionError(err error) error {
	switch {
	case redis.HasErrorPrefix(err, "NOPERM"):
		return &Problem{ErrDenied, "it lacks the command function"}
	case redis.HasErrorPrefix(err, "unknown command"), redis.HasErrorPrefix(err, "unknown subcommand"):
		return ErrFunctions
	default:
		return fmt.Errorf("load redis function library %s: %w", libraryName, err)
	}
}

func versionOf(code string) (int, error) {
	match := libraryVersion.FindStringSubmatch(code)
	if match == nil {
		return 0, errors.New("its code names no version")
	}
	return strconv.Atoi(match[1])
}
