const words = (text: string): string[] => text.trim().split(/\s+/)

/** Hosts of URLs that are not public, in many spellings that URL parsers accept. */
export const privateHosts = words(`
  127.0.0.1 127.1 127.0.1 127.255.255.254 2130706433 017700000001 0x7f000001 0x7f.1 0177.0.0.1 0177.0.1
  0x7f.0x0.0x0.0x1 127.0.0.1. 127。0。0。1 127．0．0．1 ①②⑦.0.0.1 １２７.0.0.1 %31%32%37.0.0.1 0 0.0.0.0 0x0 00.00.00.00
  0.0.0.1 10.0.0.1 0xa.0.0.1 167772161 172.16.0.1 172.31.255.255 192.168.0.1 3232235521 192.168.1
  169.254.169.254 2852039166 0xa9fea9fe 0251.0376.0251.0376 100.64.0.1 100.127.255.255 192.0.0.1 192.0.2.1
  192.88.99.1 198.18.0.1 198.19.255.255 198.51.100.1 203.0.113.1 224.0.0.1 239.255.255.255 240.0.0.1
  255.255.255.255 4294967295 [::] [::1] [0:0:0:0:0:0:0:1] [0000::0001] [::127.0.0.1] [::7f00:1]
  [::ffff:127.0.0.1] [::ffff:7f00:1] [0:0:0:0:0:ffff:7f00:1] [::ffff:169.254.169.254] [::ffff:0:127.0.0.1]
  [::ffff:8.8.8.8] [64:ff9b::127.0.0.1] [64:ff9b::7f00:1] [64:ff9b:1::7f00:1] [2002:7f00:1::]
  [2002:a9fe:a9fe::1] [2001::1] [2001:0:7f00:1::] [fe80::1] [febf::1] [fec0::1] [fc00::1] [fd00:ec2::254]
  [ff02::1] [ff0e::1] [2001:db8::1] [3fff::1] [100::1] [2001:2::1] [2001:10::1] [2001:20::1] [5f00::1] [4000::1]
  [8000::1] [e000::1]
`)

/** Invalid URLs, and URLs that outbound calls reject. */
export const badUrls = [
  '',
  'http://a b/',
  ...words(`
  file:///etc/passwd ftp://127.0.0.1/ gopher://127.0.0.1/ data:text/plain,x unix:/run/x
  http://user@hooks.example/ http://user:password@hooks.example/ https://:password@hooks.example/
  http://[fe80::1%25lo]/ http://[fe80::1%lo]/ http://256.256.256.256/ http://0x100000000/ http://1.2.3.4.5/
  http:// //127.0.0.1/ 127.0.0.1 http://%00/ http://127.0.0.1:99999/
`),
]

/** DNS answers that are private addresses, or not addresses. */
export const privateAnswers = [
  '',
  ...words(`
  127.0.0.1 ::1 ::ffff:127.0.0.1 10.0.0.1 169.254.169.254 fe80::1%lo 2606:4700::1111%lo fd00::1 0.0.0.0 64:ff9b::7f00:1
  2130706433 127.1 localhost
`),
]
