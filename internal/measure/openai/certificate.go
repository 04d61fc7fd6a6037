package openai

import (
	"crypto/tls"
	"crypto/x509"
	"errors"

	"github.com/bridgetoll/bridgetoll/internal/machine/remedy"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

// CertificateHint returns what the user can do if a handshake failed because the server's
// certificate is not accepted, or "" for other errors.
func CertificateHint(err error) string {
	if cert := (*tls.CertificateVerificationError)(nil); !errors.As(err, &cert) {
		return ""
	}
	const ca = "let SSL_CERT_FILE name the file of its CA, or of the certificate itself if that is its own CA"
	wrong := x509.HostnameError{}
	if !errors.As(err, &wrong) {
		return ca + " (" + remedy.AsRoot("SSL_CERT_FILE=CA.pem toll …") + ")"
	}
	names := wrong.Certificate.DNSNames
	for _, ip := range wrong.Certificate.IPAddresses {
		names = append(names, ip.String())
	}
	if len(names) == 0 {
		return "the server needs a certificate with a subjectAltName: its common name does not count"
	}
	const shown = 3
	return "the URL needs a name of the certificate, such as " +
		printable.Line(printable.List(names[:min(len(names), shown)])) +
		" (an entry in /etc/hosts can lead it to the address); if it is not trusted then, " + ca
}
