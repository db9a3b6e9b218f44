package s3

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
)

// TestABackupThatIsKilledLeavesNothingBehindTheNext kills the program between two parts of its upload, and runs it again.
// So many events are more than one part of an upload.
const events = 420_000

func TestABackupThatIsKilledLeavesNothingBehindTheNext(t *testing.T) {
	folder := t.TempDir()
	if err := os.Mkdir(filepath.Join(folder, "backups"), 0o755); err != nil {
		t.Fatal(err)
	}
	endpoint := serve(t, folder)
	s := newShop(t, endpoint, 100_000)
	s.store(events)
	program := filepath.Join(t.TempDir(), "collector")
	build := exec.Command("go", "build", "-o", program, "./collector")
	build.Dir = "../.."
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	backUp := func(endpoint string) (*exec.Cmd, *bytes.Buffer) {
		command := exec.CommandContext(t.Context(), program, "backup", "--redis-url", s.url, "--property", "default/shop", "--to", "s3://backups/weir/",
			"--s3-endpoint", endpoint, "--s3-path-style", "--s3-region", "eu-central-1")
		command.Env = []string{"AWS_ACCESS_KEY_ID=" + accessKey, "AWS_SECRET_ACCESS_KEY=" + secretKey}
		said := new(bytes.Buffer)
		command.Stdout, command.Stderr = said, said
		return command, said
	}
	client := awss3.New(awss3.Options{
		Region: "eu-central-1", UsePathStyle: true, BaseEndpoint: aws.String(endpoint),
		Credentials: credentials.NewStaticCredentialsProvider(accessKey, secretKey, ""),
	})
	left := func() int {
		found, err := client.ListMultipartUploads(t.Context(), &awss3.ListMultipartUploadsInput{Bucket: aws.String("backups")})
		if err != nil {
			t.Fatal(err)
		}
		return len(found.Uploads)
	}

	second := make(chan struct{})
	between := holdSecondPart(t, endpoint, second)
	command, said := backUp(between)
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	select {
	case <-second:
	case err := <-ended:
		t.Fatalf("the backup has no second part: %v, %s", err, said)
	}
	if err := command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-ended
	if n := left(); n != 1 {
		t.Fatalf("%d uploads are left by a backup that was killed, want 1", n)
	}

	// What is younger than a day may be at work still, in another cluster.
	earlier := aws.String("weir/default/shop/2026-01-31T03-17-00Z.weir")
	if _, err := client.CreateMultipartUpload(t.Context(), &awss3.CreateMultipartUploadInput{Bucket: aws.String("backups"), Key: earlier}); err != nil {
		t.Fatal(err)
	}
	again, said := backUp(endpoint)
	if err := again.Run(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	if n := left(); n != 1 {
		t.Errorf("%d uploads are left behind the next backup, want that of the same day", n)
	}
	found, err := filepath.Glob(filepath.Join(folder, "backups", "weir", "default", "shop", "*.weir"))
	if err != nil || len(found) != 1 {
		t.Fatalf("the bucket has %v, %v; want one backup", found, err)
	}
	check := exec.CommandContext(t.Context(), program, "restore", "--check", found[0])
	if told, err := check.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, told)
	}
	t.Log(said.String())
}

// holdSecondPart serves a server's requests up to the second part of an upload, which is not answered.
func holdSecondPart(t *testing.T, endpoint string, second chan<- struct{}) string {
	t.Helper()
	target, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	// The host stays what it was signed for.
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target); r.Out.Host = r.In.Host }}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("partNumber") == "2" {
			_, _ = io.Copy(io.Discard, r.Body) // only then the connection's end is noticed
			close(second)
			<-r.Context().Done()
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL
}
