//go:build shards

// Package shards has the topology of a history's tables judged by servers that are several: ClickHouse 18.16 of Debian, two shards of
// two replicas each, with ZooKeeper. Of what is asked there it knows too little: that is for the engine of today, with one server.
package shards

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-dev/weir/collector/history/schema"
	"github.com/weir-dev/weir/collector/redisserver/debian"
)

// cluster is the one of the servers' configuration, database the property's.
const cluster, database = schema.Cluster("two"), "weir_a_shop"

// packages unpacks what is run, once for all runs.
func packages(t *testing.T) (tree string) {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	tree = filepath.Join(cache, "weir", "packages", "clickhouse-server-zookeeper")
	if _, err := os.Stat(filepath.Join(tree, "usr/sbin/clickhouse-server")); err == nil {
		return tree
	}
	if err := debian.Unpack(t.Context(), tree, "clickhouse-server", "zookeeper", "default-jre-headless"); err != nil {
		t.Fatal(err)
	}
	return tree
}

// start starts a program, which ends with the test, and returns what kills it.
func start(t *testing.T, tree, program string, arguments ...string) (kill func()) {
	t.Helper()
	command := exec.Command(program, arguments...)
	libraries := filepath.Join(tree, "usr/lib/x86_64-linux-gnu")
	command.Env = append(os.Environ(), "LD_LIBRARY_PATH="+libraries)
	var log bytes.Buffer
	command.Stdout, command.Stderr = &log, &log
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	killed := false
	kill = func() {
		if !killed {
			killed = true
			_ = command.Process.Kill()
			_ = command.Wait() // it was killed
		}
	}
	t.Cleanup(func() {
		kill()
		if t.Failed() {
			t.Logf("%s: %s", program, log.String()[max(0, log.Len()-2000):])
		}
	})
	return kill
}

// port is one that nobody listens on.
func port(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}

// eventually waits until something is true.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for end := time.Now().Add(30 * time.Second); !is(); <-ticker.C {
		if time.Now().After(end) {
			t.Fatalf("%s: not within 30 seconds", what)
		}
	}
}

// zookeeper starts one and returns its port.
func zookeeper(t *testing.T, tree string) int {
	t.Helper()
	own, dir := port(t), t.TempDir()
	text := fmt.Sprintf("tickTime=500\ndataDir=%s\nclientPort=%d\nclientPortAddress=127.0.0.1\nadmin.enableServer=false\n", dir, own)
	path := filepath.Join(dir, "zoo.cfg")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	java, err := exec.LookPath("java")
	if found, _ := filepath.Glob(filepath.Join(tree, "usr/lib/jvm/*/bin/java")); err != nil && len(found) > 0 {
		java = found[0]
	}
	jars, err := filepath.Glob(filepath.Join(tree, "usr/share/java/*.jar"))
	if err != nil || java == "" || len(jars) == 0 {
		t.Fatalf("there is no Java or no ZooKeeper: %v", err)
	}
	start(t, tree, java, "-Xmx128m", "-cp", strings.Join(jars, ":"), "org.apache.zookeeper.server.quorum.QuorumPeerMain", path)
	eventually(t, "ZooKeeper takes connections", func() bool {
		connection, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", own))
		if err == nil {
			connection.Close()
		}
		return err == nil
	})
	return own
}

// server is a replica.
type server struct {
	t         *testing.T
	http, tcp int
	config    string
	kill      func()
	run       func() (kill func())
}

// servers starts two shards of two replicas each.
func servers(t *testing.T) (list []*server) {
	t.Helper()
	tree := packages(t)
	keeper := zookeeper(t, tree)
	remote := ""
	for range 4 {
		list = append(list, &server{t: t, http: port(t), tcp: port(t)})
	}
	for i := range list {
		if i%2 == 0 {
			remote += "<shard><internal_replication>true</internal_replication>"
		}
		remote += fmt.Sprintf("<replica><host>127.0.0.1</host><port>%d</port></replica>", list[i].tcp)
		if i%2 == 1 {
			remote += "</shard>"
		}
	}
	for i, one := range list {
		dir := t.TempDir()
		users := filepath.Join(dir, "users.xml")
		write(t, users, "<profiles><default/></profiles><quotas><default/></quotas><users><default><password></password>"+
			"<networks><ip>127.0.0.1</ip></networks><profile>default</profile><quota>default</quota></default></users>")
		one.config = filepath.Join(dir, "config.xml")
		write(t, one.config, fmt.Sprintf("<logger><level>warning</level><console>1</console></logger><listen_host>127.0.0.1</listen_host>"+
			"<http_port>%d</http_port><tcp_port>%d</tcp_port><interserver_http_port>%d</interserver_http_port>"+
			"<interserver_http_host>127.0.0.1</interserver_http_host><path>%[4]s/data/</path><tmp_path>%[4]s/tmp/</tmp_path>"+
			"<users_config>%s</users_config><default_profile>default</default_profile><default_database>default</default_database>"+
			"<mark_cache_size>5368709</mark_cache_size><zookeeper><node><host>127.0.0.1</host><port>%d</port></node></zookeeper>"+
			"<macros><shard>%d</shard><replica>%d</replica></macros><distributed_ddl><path>/clickhouse/ddl</path></distributed_ddl>"+
			"<remote_servers><%[9]s>%[10]s</%[9]s></remote_servers>",
			one.http, one.tcp, port(t), dir, users, keeper, i/2, i, cluster, remote))
		one.run = func() func() {
			return start(t, tree, filepath.Join(tree, "usr/sbin/clickhouse-server"), "--config-file="+one.config)
		}
		one.kill = one.run()
		// One after the other: where several make what they need in ZooKeeper at once, 18.16 crashes.
		eventually(t, "a server reaches ZooKeeper", func() bool {
			got, err := one.ask("SELECT count() FROM system.zookeeper WHERE path = '/clickhouse/ddl'")
			return err == nil && got != ""
		})
	}
	return list
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte("<yandex>"+content+"</yandex>"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// ask runs a statement with the settings of a cluster.
func (s *server) ask(sql string) (string, error) {
	values := url.Values{"database": {"default"}, "insert_distributed_sync": {"1"}}
	for name, value := range cluster.Settings() {
		text := fmt.Sprint(value)
		if yes, isBool := value.(bool); isBool {
			text = map[bool]string{true: "1", false: "0"}[yes]
		}
		values.Set(name, text)
	}
	ctx, cancel := context.WithTimeout(s.t.Context(), 20*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, fmt.Sprintf("http://127.0.0.1:%d/?%s", s.http, values.Encode()), strings.NewReader(sql))
	if err != nil {
		return "", err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", sql, text)
	}
	return strings.TrimSpace(string(text)), err
}

// want fails unless a statement answers something.
func (s *server) want(sql, want string) {
	s.t.Helper()
	if got, err := s.ask(sql); err != nil || got != want {
		s.t.Errorf("%s: %q, %v; want %q", sql, got, err, want)
	}
}

// becomes waits until a statement answers something. 18.16 writes its own shard's rows to itself, whichever replica is asked first: they
// are in answers when that one has got them.
func (s *server) becomes(sql, want string) {
	s.t.Helper()
	eventually(s.t, sql+" is "+want, func() bool { got, err := s.ask(sql); return err == nil && got == want })
}

// exec runs a statement.
func (s *server) exec(sql string) {
	s.t.Helper()
	if _, err := s.ask(sql); err != nil {
		s.t.Fatal(err)
	}
}

// makeTables makes the tables of events as the schema does, with the two columns that say where rows lie: 18.16 knows neither how the
// others are compressed, nor projections, nor AS in a database that the server does not begin in.
func makeTables(s *server) {
	s.exec("CREATE DATABASE " + database + " ON CLUSTER " + string(cluster))
	const columns = " (at UInt64, visitor UInt64) "
	for _, statement := range schema.Creates(database, cluster)[:2] {
		head, _, _ := strings.Cut(statement, string(schema.Quote(string(cluster))))
		_, engine, _ := strings.Cut(statement, " ENGINE = ")
		engine, _, _ = strings.Cut(engine, " SETTINGS ")
		s.exec(head + schema.Quote(string(cluster)) + columns + "ENGINE = " + engine)
	}
}

// TestTheTopologyOfACluster is one test, for each step needs the one before.
func TestTheTopologyOfACluster(t *testing.T) {
	all := servers(t)
	makeTables(all[0])
	const events, local = database + ".events", database + ".events_local"
	insert := func(first int) string {
		return fmt.Sprintf("INSERT INTO %s SELECT bitShiftLeft(toUInt64(1700000000000) + number, 20), number %% 100 FROM system.numbers WHERE number >= %d LIMIT 10000",
			events, first)
	}
	all[3].exec(insert(0))
	all[3].becomes("SELECT count(), uniqExact(visitor) FROM "+events, "10000\t100")

	// Each replica has all rows of its shard, and a visitor's lie on one.
	sum := 0
	for shard := range 2 {
		count, err := all[2*shard].ask("SELECT count() FROM " + local)
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, "the second replica has what the first has", func() bool {
			got, err := all[2*shard+1].ask("SELECT count() FROM " + local)
			return err == nil && got == count
		})
		var n, visitors int
		text, err := all[2*shard].ask("SELECT count(), uniqExact(visitor) FROM " + local + " WHERE visitor != 0")
		if _, scanErr := fmt.Sscan(text, &n, &visitors); err != nil || scanErr != nil || n == 0 {
			t.Fatal(text, err, scanErr)
		}
		sum += visitors
	}
	if sum != 99 { // the hundredth is nobody, whose rows are on both
		t.Errorf("the shards have %d visitors together, want 99: somebody's rows lie on two", sum)
	}
	all[1].want("SELECT count() FROM "+events+" WHERE at NOT IN (SELECT at FROM "+events+" WHERE visitor = 1)", "9900")

	// What was sent is known to the other replica: a block that is sent again is dropped.
	all[0].exec(insert(0))
	all[0].want("SELECT count() FROM "+events, "10000")

	// One replica is lost: nothing is missing, and what is written meanwhile it gets when it is back.
	all[0].kill()
	all[3].want("SELECT count() FROM "+events, "10000")
	all[3].exec(insert(20_000))
	all[3].becomes("SELECT count() FROM "+events, "20000")
	all[0].kill = all[0].run()
	eventually(t, "the replica is back and has all", func() bool {
		here, err := all[0].ask("SELECT count() FROM " + local)
		there, otherErr := all[1].ask("SELECT count() FROM " + local)
		return err == nil && otherErr == nil && here == there
	})

	// A shard is lost: an error, and not the half of an answer.
	all[2].kill()
	all[3].kill()
	if got, err := all[0].ask("SELECT count() FROM " + events); err == nil {
		t.Errorf("without a shard the answer is %s, want an error", got)
	}
	all[2].kill, all[3].kill = all[2].run(), all[3].run()
	eventually(t, "both shards answer", func() bool {
		got, err := all[0].ask("SELECT count() FROM " + events)
		return err == nil && got == "20000"
	})

	// A month goes everywhere.
	all[1].exec("ALTER TABLE " + local + " ON CLUSTER two DROP PARTITION 202311")
	for _, one := range all {
		eventually(t, "the month is gone", func() bool { got, err := one.ask("SELECT count() FROM " + local); return err == nil && got == "0" })
	}
}
