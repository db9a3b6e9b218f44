package resources

import (
	"errors"
	"path"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/stream"
)

// The fields that say what is trusted and shown in a Property's own Redis.
const (
	redisCAField          = "spec.redis.caSecretRef"
	redisCertificateField = "spec.redis.clientCertificateSecretRef"
)

// RedisCertificates are those that the spec names.
func RedisCertificates(spec *v1alpha1.Redis) []Certificate {
	return certificates(redisCAField, spec.CASecretRef, redisCertificateField, spec.ClientCertificateSecretRef)
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
