package stream

// Access is what a Redis user may do with one property's keys. A function of the library runs with its caller's
// permissions, so each access names the commands that its functions use; none may load or evaluate scripts.
type Access int

// The accesses, one for each role of the tenant pods.
const (
	// AppendAccess is for the collector: it may append, and read nothing of the streams back.
	AppendAccess Access = iota
	// DeliverAccess is for the deliverer: it reads, records and trims.
	DeliverAccess
	// ReadAccess is for the query role: it reads, and puts deliveries back that are to be made again.
	ReadAccess
)

// Rules returns the arguments of ACL SETUSER that give a user this access to the property namespace/name, beside
// its password. The user may do nothing else.
func (a Access) Rules(namespace, name string) []string {
	rules := []string{"reset", "on", "resetchannels", "~" + keysOf(namespace, name).pattern()}
	connection := []string{"ping", "select", "readonly", "cluster|slots", "cluster|shards", "command"}
	for _, list := range [][]string{connection, a.commands()} {
		for _, command := range list {
			rules = append(rules, "+"+command)
		}
	}
	if a == AppendAccess {
		// Claims that are out of use are freed, and nothing else.
		rules = append(rules, "(+unlink ~"+keysOf(namespace, name).claims()+":*)")
	}
	if a == ReadAccess {
		// What a replay writes: it may schedule and record, but append no event.
		k := keysOf(namespace, name)
		rules = append(rules, "(+xadd ~"+k.deliveries()+")", "(+zadd +hset ~"+k.due("*")+" ~"+k.open("*")+" ~"+k.attempts("*")+")")
	}
	return rules
}

func (a Access) commands() []string {
	switch a {
	case AppendAccess:
		return []string{
			"fcall", "time", "get", "set", "hget", "hmget", "hset", "hlen", "hdel", "hgetall", "pexpire", "xadd", "xinfo|stream",
		}
	case DeliverAccess:
		return []string{
			"fcall", "time", "exists", "unlink", "set", "hget", "hset", "hdel", "zadd", "zrem", "zcard", "zscore", "zmscore", "zrange", "zrangebyscore",
			"xadd", "xlen", "xrange", "xread", "xtrim", "xack", "xclaim", "xautoclaim", "xpending", "xreadgroup",
			"xgroup|create", "xgroup|destroy", "xinfo|stream", "xinfo|groups",
		}
	default:
		return []string{"xrange", "xread", "xinfo|stream", "fcall", "zscore", "xpending"}
	}
}
