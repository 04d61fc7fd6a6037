package agent

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"time"
)

const (
	// validity of certificates, which is not checked: a key is valid while its hub listens
	keyLife = 24 * time.Hour
	// name in the hub's certificate, never resolved
	hubName = "hub.bridgetoll"
	// ALPN protocol of the TLS handshake; versions of toll are compared later
	protocol = "bridgetoll-agent"
)

// Key authenticates a run's toll and its agents to each other. It is only in memory, and in the
// bundle for the agents.
type Key struct {
	own    tls.Certificate
	pool   *x509.CertPool
	at     func() time.Time
	bundle []byte
}

// NewKey makes Ed25519 certificates for toll and all agents, and discards the authority's key.
func NewKey() (*Key, error) { return newKey(time.Now()) }

func newKey(now time.Time) (*Key, error) {
	ca, caDER, err := issue(now, nil, func(c *x509.Certificate) {
		c.IsCA, c.BasicConstraintsValid = true, true
		c.MaxPathLenZero = true
		c.KeyUsage = x509.KeyUsageCertSign
	})
	if err != nil {
		return nil, err
	}
	hub, hubDER, err := issue(now, ca, func(c *x509.Certificate) {
		c.DNSNames = []string{hubName}
		c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	})
	if err != nil {
		return nil, err
	}
	agent, agentDER, err := issue(now, ca, func(c *x509.Certificate) {
		c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	})
	if err != nil {
		return nil, err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(agent.secret)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	k := &Key{own: tls.Certificate{Certificate: [][]byte{hubDER}, PrivateKey: hub.secret},
		pool: x509.NewCertPool(), at: atMaking(ca.cert)}
	k.pool.AddCert(ca.cert)
	for _, b := range []pem.Block{{Type: pemCert, Bytes: caDER}, {Type: pemCert, Bytes: agentDER},
		{Type: pemSecret, Bytes: secret}} {
		k.bundle = append(k.bundle, pem.EncodeToMemory(&b)...)
	}
	return k, nil
}

const (
	pemCert   = "CERTIFICATE"
	pemSecret = "PRIVATE KEY"
)

type issued struct {
	cert   *x509.Certificate
	secret ed25519.PrivateKey
}

// issue returns a certificate and its key. If ca is nil, the certificate is self-signed.
func issue(now time.Time, ca *issued, set func(*x509.Certificate)) (*issued, []byte, error) {
	fail := func(err error) (*issued, []byte, error) {
		return nil, nil, fmt.Errorf("make a key: %w", err)
	}
	public, secret, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return fail(err)
	}
	const serialBits = 127
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), serialBits))
	if err != nil {
		return fail(err)
	}
	c := &x509.Certificate{SerialNumber: serial, Subject: pkix.Name{CommonName: "bridgetoll run"},
		NotBefore: now, NotAfter: now.Add(keyLife), KeyUsage: x509.KeyUsageDigitalSignature}
	set(c)
	parent, signer := c, secret
	if ca != nil {
		parent, signer = ca.cert, ca.secret
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, public, signer)
	if err != nil {
		return fail(err)
	}
	made, err := x509.ParseCertificate(der)
	if err != nil {
		return fail(err)
	}
	return &issued{made, secret}, der, nil
}

// atMaking returns a clock for the check of certificates, which stands at the time of their making:
// certificates must not expire in a long run, and machines' clocks may differ.
func atMaking(ca *x509.Certificate) func() time.Time {
	return func() time.Time { return ca.NotBefore }
}

// Bundle returns the agents' side of the key as PEM, about 2 kB. It is secret.
func (k *Key) Bundle() []byte { return append([]byte{}, k.bundle...) }

func (k *Key) config() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS13, Time: k.at,
		Certificates: []tls.Certificate{k.own}, ClientCAs: k.pool,
		ClientAuth: tls.RequireAndVerifyClientCert, SessionTicketsDisabled: true,
		NextProtos: []string{protocol}}
}

var errBundle = errors.New("the bundle does not contain a run's key")

func openBundle(bundle []byte) (*tls.Config, error) {
	var certs [][]byte
	var secret any
	for rest := bundle; ; {
		var b *pem.Block
		if b, rest = pem.Decode(rest); b == nil {
			break
		}
		switch b.Type {
		case pemCert:
			certs = append(certs, b.Bytes)
		case pemSecret:
			var err error
			if secret, err = x509.ParsePKCS8PrivateKey(b.Bytes); err != nil {
				return nil, fmt.Errorf("%w: %w", errBundle, err)
			}
		}
	}
	const both = 2
	own, ok := secret.(ed25519.PrivateKey)
	if len(certs) != both || !ok {
		return nil, errBundle
	}
	ca, err := x509.ParseCertificate(certs[0])
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errBundle, err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(ca)
	return &tls.Config{MinVersion: tls.VersionTLS13, Time: atMaking(ca),
		Certificates: []tls.Certificate{{Certificate: certs[1:], PrivateKey: own}},
		RootCAs:      pool, ServerName: hubName, NextProtos: []string{protocol}}, nil
}
