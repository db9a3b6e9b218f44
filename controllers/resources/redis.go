package resources

import (
	"errors"
	"path"

	corev1 "k8s.io/api/core/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/stream"
)

// The fields that say what is trusted and shown in a Property's own Redis.
const (
	redisCAField          = "spec.redis.caSecretRef"
	redisCertificateField = "spec.redis.clientCertificateSecretRef"
)

// RedisCertificate is one part of what is trusted and shown in a Property's own Redis: where the spec says that it stands,
// and where it belongs.
type RedisCertificate struct {
	Field string
	Ref   v1alpha1.SecretKeyReference
	Of    func(*stream.TLS) *string
}

// RedisCertificates are those that the spec names.
func RedisCertificates(spec *v1alpha1.Redis) []RedisCertificate {
	var list []RedisCertificate
	if ref := spec.CASecretRef; ref != nil {
		list = append(list, RedisCertificate{redisCAField, v1alpha1.SecretKeyReference(*ref), func(t *stream.TLS) *string { return &t.CA }})
	}
	if ref := spec.ClientCertificateSecretRef; ref != nil {
		list = append(list,
			RedisCertificate{
				redisCertificateField, v1alpha1.SecretKeyReference{Name: ref.Name, Key: corev1.TLSCertKey}, func(t *stream.TLS) *string { return &t.Certificate },
			},
			RedisCertificate{
				redisCertificateField, v1alpha1.SecretKeyReference{Name: ref.Name, Key: corev1.TLSPrivateKeyKey}, func(t *stream.TLS) *string { return &t.Key },
			})
	}
	return list
}

// RedisCertificateField names the field that an error of [stream.TLS] is about; "" for another error.
func RedisCertificateField(err error) string {
	switch {
	case errors.Is(err, stream.ErrCA):
		return redisCAField
	case errors.Is(err, stream.ErrClientCertificate):
		return redisCertificateField
	default:
		return ""
	}
}

// RedisSecretData is what a role's Secret holds of how Redis is reached. Its pods mount all of it.
func RedisSecretData(redis config.Redis) map[string][]byte {
	data := map[string][]byte{}
	for file, content := range redis.Files() {
		data[path.Base(file)] = content
	}
	return data
}
