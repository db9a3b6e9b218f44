package deliver

import "context"

// answerReplays makes the replays that query pods ask for, until taking ends. Several deliverers may look: one takes each.
func (e *Engine) answerReplays(taking context.Context) {
	for {
		if err := e.options.Stream.AnswerReplay(taking, e.clock.Now(), e.options.Past, e.configured); err != nil && taking.Err() == nil {
			e.options.Logger.Error("a replay failed", "error", err)
		}
		if !pause(taking, e.timing.replay) {
			return
		}
	}
}
