package main

import (
	"encoding/xml"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// configuration is what this program reads of a ClickHouse server's configuration file.
type configuration struct {
	XMLName    xml.Name `xml:"clickhouse"`
	ListenHost string   `xml:"listen_host"`
	HTTPPort   int      `xml:"http_port"`
	HTTPSPort  int      `xml:"https_port"`
	Path       string   `xml:"path"`
	Users      string   `xml:"user_directories>users_xml>path"`
	TLS        struct {
		Certificate  string `xml:"certificateFile"`
		Key          string `xml:"privateKeyFile"`
		CA           string `xml:"caConfig"`
		Verification string `xml:"verificationMode"`
	} `xml:"openSSL>server"`
	Clusters struct {
		XML string `xml:",innerxml"`
	} `xml:"remote_servers"`
	Keeper struct {
		XML string `xml:",innerxml"`
	} `xml:"zookeeper"`
	Macros struct {
		XML string `xml:",innerxml"`
	} `xml:"macros"`
}

// configuredUsers are the users of a users.xml. They may do everything, as those with access_management may.
type configuredUsers struct {
	XMLName xml.Name `xml:"clickhouse"`
	Users   struct {
		All []struct {
			XMLName xml.Name
			SHA256  string `xml:"password_sha256_hex"`
		} `xml:",any"`
	} `xml:"users"`
}

func readConfiguration(path string) (configuration, configuredUsers, error) {
	var config configuration
	var users configuredUsers
	if err := readXML(path, &config); err != nil {
		return config, users, err
	}
	if config.Path == "" || config.Users == "" || config.HTTPPort == 0 && config.HTTPSPort == 0 {
		return config, users, errors.New("the configuration must have path, user_directories.users_xml.path, and http_port or https_port")
	}
	return config, users, readXML(config.Users, &users)
}

func readXML(path string, into any) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := xml.Unmarshal(content, into); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// enginePort is the port of ClickHouse's own protocol at which the engine takes servers of a cluster on this machine for itself. It does
// not listen there: another machine, or 127.0.0.2, is a server that is away.
const enginePort = 9000

// engineConfiguration writes what the engine is given: the data directory, the clusters, Keeper and its macros. Its only user is
// "default", whose rights are all: who may do what is decided in front of it.
func engineConfiguration(config configuration) (path string, err error) {
	if err := os.MkdirAll(config.Path, 0o700); err != nil {
		return "", err
	}
	path = filepath.Join(config.Path, "engine.xml")
	text := fmt.Sprintf("<clickhouse><tcp_port>%d</tcp_port><remote_servers>%s</remote_servers>", enginePort, config.Clusters.XML)
	if config.Keeper.XML != "" {
		text += "<zookeeper>" + config.Keeper.XML + "</zookeeper>"
	}
	text += "<macros>" + config.Macros.XML + "</macros></clickhouse>\n"
	return path, os.WriteFile(path, []byte(text), 0o600)
}
