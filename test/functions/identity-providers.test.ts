import { afterEach, expect, test, vi } from 'vitest'
import { handler } from '../../functions/identity.ts'
import { selfSigned } from '../core/support/certificate.ts'
import { cloud, requestByType, ldap, oidc, openSource } from '../core/support/identity.ts'
import { jsonRequest, send } from '../support/request.ts'
import { newUser } from './users.ts'

await vi.hoisted(async () => {
  process.env['PLAT_OUTBOUND_ALLOW'] = '127.0.0.1:4444,[::1]:389,idp.internal:80'
  await import('../support/without-rate-limits.ts')
})

const path = '/api/v1/platform/identity/providers'
const { headers } = await newUser('PlatformAdmin')
const configure = (body: unknown) => send(handler, jsonRequest(path, body, headers))
const list = async () => (await send(handler, { target: path, headers })).json.items

afterEach(async () => {
  for (const { id } of await list()) await send(handler, { method: 'DELETE', target: `${path}/${id}`, headers })
})

const { cert, key } = selfSigned('directory.example.com')
const withoutFields = (request: object, ...names: string[]): object =>
  Object.fromEntries(Object.entries(request).filter(([name]) => !names.includes(name)))

test.each([
  ['OIDC', { type: 'OIDC' }, ['/issuer', '/clientId', '/clientSecret']],
  ['LDAP', { type: 'LDAP' }, ['/url', '/bindDn', '/userSearchBase', '/bindPassword']],
  [
    'LDAP with the secret of another type',
    { ...withoutFields(ldap, 'bindPassword'), clientSecret: 'x' },
    ['/bindPassword'],
  ],
  [
    'OIDC with the secret of another type',
    { ...withoutFields(oidc, 'clientSecret'), bindPassword: 'x' },
    ['/clientSecret'],
  ],
  ...Object.entries(requestByType).flatMap(([type, request]) =>
    Object.keys(request)
      .filter((name) => name !== 'type')
      .map((name) => [`${type} without ${name}`, withoutFields(request, name), [`/${name}`]] as const),
  ),
] as [string, object, string[]][])('rejects %s and names the missing fields', async (_, body, fields) => {
  const { status, json } = await configure(body)
  expect([status, json.error]).toEqual([422, 'idp_config_invalid'])
  const expected = fields.map((field) => ({ in: 'body', path: field, code: 'required', message: expect.any(String) }))
  expect(json.details).toEqual(expected)
  expect(await list()).toEqual([])
})

const secret = 'do-not-echo-this'
const directory = 'directory.example.com'

test.each([
  [{ ...oidc, issuer: 'http://id.example.com' }, '/issuer https_required'],
  [{ ...oidc, issuer: 'https://id.example.com/?a=b' }, '/issuer invalid_url'],
  [{ ...oidc, issuer: 'https://id.example.com/?' }, '/issuer invalid_url'],
  [{ ...oidc, issuer: 'https://id.example.com/#a' }, '/issuer invalid_url'],
  [{ ...openSource, baseUrl: 'http://sso.example.com' }, '/baseUrl https_required'],
  [{ ...cloud, authorityHost: 'http://login.example.com' }, '/authorityHost https_required'],
  [{ ...oidc, issuer: 'http://idp.internal:81' }, '/issuer https_required'],
  [{ ...cloud, tenantId: 'common' }, '/tenantId not_one_tenant'],
  [{ ...cloud, tenantId: 'Organizations' }, '/tenantId not_one_tenant'],
  [{ ...ldap, url: `ldap://${directory}` }, '/startTls tls_required'],
  [{ ...ldap, url: `ldap://${directory}`, startTls: false }, '/startTls tls_required'],
  [{ ...ldap, startTls: true }, '/startTls not_applicable'],
  [{ ...ldap, url: `ldaps://${directory}/dc=example` }, '/url invalid_url'],
  [{ ...ldap, url: `ldaps://${directory}?sub` }, '/url invalid_url'],
  [{ ...ldap, url: `ldaps://admin:${secret}@${directory}` }, '/url invalid_url'],
  [{ ...ldap, url: 'ldaps://a%00b.example.com' }, '/url invalid_url'],
  [{ ...ldap, caCertificate: 'trust me' }, '/caCertificate invalid_certificate'],
  [{ ...ldap, caCertificate: '' }, '/caCertificate invalid_certificate'],
  [{ ...ldap, caCertificate: cert.replace(/MII.{20}/, 'AAAA') }, '/caCertificate invalid_certificate'],
  [{ ...ldap, caCertificate: `${cert}${key}` }, '/caCertificate invalid_certificate'],
])('rejects the configuration %o with %s', async (body, expected) => {
  const { status, json, text } = await configure(body)
  expect([status, json.error]).toEqual([422, 'idp_config_invalid'])
  expect(json.details.map((detail: any) => `${detail.path} ${detail.code}`)).toEqual([expected])
  for (const value of [secret, 'first secret', 'PRIVATE']) expect(text).not.toContain(value)
  expect(await list()).toEqual([])
})

test.each([
  [{ ...oidc, issuer: 'https://127.0.0.1/' }],
  [{ ...oidc, issuer: 'http://127.0.0.1:4445' }],
  [{ ...oidc, issuer: `https://admin:${secret}@id.example.com` }],
  [{ ...openSource, baseUrl: 'https://10.1.2.3' }],
  [{ ...cloud, authorityHost: 'https://192.168.0.1' }],
  [{ ...ldap, url: 'ldaps://0x7f000001:636' }],
  [{ ...ldap, url: 'ldap://[::1]:390', startTls: true }],
])('rejects the private address of %o', async (body) => {
  const { status, json, text } = await configure(body)
  expect([status, json.error]).toEqual([422, 'url_not_allowed'])
  expect(text).not.toContain(secret)
})

const largestRequest = {
  roleMappings: Array.from({ length: 100 }, (_, index) => ({ group: `${index}`.padEnd(500, 'g'), role: 'Viewer' })),
  caCertificate: cert.repeat(Math.floor(20_000 / cert.length)),
  displayName: 'ü'.repeat(100),
}

test.each([
  ['an allowed address', { ...oidc, issuer: 'http://127.0.0.1:4444' }],
  ['an allowed name', { ...oidc, issuer: 'http://idp.internal' }],
  ['an allowed address with StartTLS', { ...ldap, url: 'ldap://[::1]', startTls: true }],
  [
    'StartTLS with two certificates',
    { ...ldap, url: `ldap://${directory}`, startTls: true, caCertificate: `${cert}\n${cert}` },
  ],
  ['the largest fields', { ...ldap, ...largestRequest }],
])('accepts %s', async (_, body) => {
  expect((await configure(body)).status).toBe(201)
})

const breaks = ['\n', '\t', '\u0000', '\u2028']

test.each([
  [{ ...oidc, type: 'Other' }, '/type'],
  [{ ...oidc, issuer: 'nowhere' }, '/issuer'],
  [{ ...oidc, issuer: 'ftp://id.example.com' }, '/issuer'],
  [{ ...oidc, issuer: 'javascript:alert(1)' }, '/issuer'],
  [{ ...oidc, issuer: 'https://id.example.com/ü' }, '/issuer'],
  [{ ...oidc, issuer: 'https:\\\\id.example.com' }, '/issuer'],
  ...breaks.flatMap((character) => [
    [{ ...oidc, issuer: `https://id.exa${character}mple.com` }, '/issuer'],
    [{ ...oidc, clientId: `a${character}b` }, '/clientId'],
    [{ ...oidc, clientSecret: `a${character}b` }, '/clientSecret'],
    [{ ...oidc, displayName: `a${character}b` }, '/displayName'],
    [{ ...ldap, bindDn: `cn=a${character}b` }, '/bindDn'],
    [{ ...ldap, bindPassword: `a${character}b` }, '/bindPassword'],
    [{ ...ldap, url: `ldaps://a${character}b` }, '/url'],
  ]),
  [{ ...oidc, clientSecret: '' }, '/clientSecret'],
  [{ ...cloud, tenantId: '..' }, '/tenantId'],
  [{ ...cloud, tenantId: 'a/b' }, '/tenantId'],
  [{ ...openSource, realm: '../master' }, '/realm'],
  [{ ...ldap, userLoginAttribute: 'uid)(objectClass=*' }, '/userLoginAttribute'],
  [{ ...ldap, url: 'https://directory.example.com' }, '/url'],
  [{ ...oidc, scopes: ['a b'] }, '/scopes/0'],
  [{ ...oidc, scopes: Array(21).fill('a') }, '/scopes'],
  [{ ...oidc, roleMappings: [{ group: 'g', role: 'King' }] }, '/roleMappings/0/role'],
  [{ ...oidc, roleMappings: [{ group: '', role: 'Viewer' }] }, '/roleMappings/0/group'],
  [{ ...oidc, enabled: 'yes' }, '/enabled'],
] as [object, string][])('rejects the request %o at %s', async (body, field) => {
  const { status, json } = await configure(body)
  expect([status, json.error]).toEqual([400, 'validation_failed'])
  expect(json.details.map((detail: any) => detail.path)).toContain(field)
})

test('names all invalid fields', async () => {
  const { json } = await configure({ type: 'LDAP', url: `ldap://${directory}`, caCertificate: 'x' })
  const fields = ['/bindDn', '/bindPassword', '/caCertificate', '/startTls', '/userSearchBase']
  expect(json.details.map((detail: any) => detail.path).toSorted()).toEqual(fields)
})

test.each([
  [{ ...oidc, issuer: 'http://127.0.0.1:4444/acme' }],
  [{ ...ldap, url: 'ldap://[::1]:389', startTls: true }],
])('the test of the unreachable provider %o reveals nothing about the network', async (request) => {
  const { json: provider } = await configure(request)
  const { status, json, text } = await send(handler, jsonRequest(`${path}/${provider.id}/test`, '', headers))
  expect([status, json.ok, json.checks.some(({ ok }: any) => !ok)]).toEqual([200, false, true])
  expect(text).not.toMatch(/ECONN|127\.0\.0\.1|::1|at .*\.ts|first secret/)
})
