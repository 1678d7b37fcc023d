import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Plat } from '../support/plat.ts'
import { startWorkplace, type Workplace } from './support/workplace.ts'

let workplace: Workplace
let plat: Plat

beforeAll(async () => {
  workplace = await startWorkplace()
  plat = workplace.plat
})
afterAll(() => workplace[Symbol.asyncDispose]())

const oidc = ['idp', 'add', 'oidc', '--issuer', 'https://id.example.com', '--client-id', 'platform']

test('adds, updates, lists and removes a provider of each type', async () => {
  const mappings = ['--map', 'cn=ops,dc=acme=Operator', '--map', 'auditors=Auditor']
  const added = await plat.json(
    [...oidc, '--scope', 'openid', '--scope', 'groups', ...mappings, '--secret-stdin'],
    's3cret\n',
  )
  expect(added).toMatchObject({
    type: 'OIDC',
    issuer: 'https://id.example.com',
    clientId: 'platform',
    scopes: ['openid', 'groups'],
    roleMappings: [
      { group: 'cn=ops,dc=acme', role: 'Operator' },
      { group: 'auditors', role: 'Auditor' },
    ],
    enabled: true,
  })
  const changed = await plat.json([...oidc, '--display-name', 'Acme', '--default-role', 'Auditor', '--disabled'])
  expect(changed).toMatchObject({ id: added.id, displayName: 'Acme', enabled: false, roleMappings: [] })
  const { out } = await plat.run(['idp', 'list'])
  expect(out).toMatch(new RegExp(`^${added.id} +OIDC +Acme +Disabled +https://id\\.example\\.com$`, 'm'))
  const unsure = await plat.run(['idp', 'remove', added.id])
  expect([unsure.exitCode, unsure.err]).toEqual([2, expect.stringContaining('Use --yes to confirm.')])
  expect(await plat.json(['idp', 'remove', added.id, '--yes'])).toEqual({ id: added.id, deleted: true })
  expect(await plat.json(['idp', 'list'])).toEqual({ items: [] })
})

test('reads the secret from the environment and never prints it', async () => {
  const asAutomation = plat.with({ PLAT_IDP_SECRET: 'very secret' })
  const cloud = ['idp', 'add', 'cloud-directory', '--tenant-id', 'acme.example.com', '--client-id', 'platform']
  const { exitCode, out, err } = await asAutomation.run(cloud)
  expect([exitCode, err]).toEqual([0, ''])
  expect(out).not.toContain('very secret')
  const [{ id }] = (await plat.json(['idp', 'list'])).items
  expect(await plat.prints(['idp', 'consent', id])).toMatch(/^https:\/\/\S+acme\.example\.com\S+state=\S+\n$/)
  await plat.prints(['idp', 'remove', id, '--yes'])
})

test('accepts a bind password and certificates for LDAP, and exits with 1 if a test fails', async () => {
  const certificate = '-----BEGIN CERTIFICATE-----\nnonsense\n-----END CERTIFICATE-----\n'
  const file = join(workplace.folder, 'ca.pem')
  await writeFile(file, certificate)
  const where = [
    '--url',
    'ldaps://ldap.invalid',
    '--bind-dn',
    'cn=platform,dc=acme',
    '--user-search-base',
    'ou=people,dc=acme',
  ]
  const refused = await plat.run(['idp', 'add', 'ldap', ...where, '--ca-file', file, '--secret-stdin'], 'secret')
  expect([refused.exitCode, refused.err]).toEqual([1, expect.stringContaining('(idp_config_invalid)')])
  const { id } = await plat.json(['idp', 'add', 'ldap', ...where, '--secret-stdin'], 'secret')
  const tested = await plat.run(['idp', 'test', id])
  expect([tested.exitCode, tested.out]).toEqual([1, expect.stringMatching(/^FAILED \S+: /m)])
  expect(JSON.parse((await plat.run(['idp', 'test', id, '--json'])).out)).toMatchObject({ ok: false })
  await plat.prints(['idp', 'remove', id, '--yes'])
})

test('reports the missing secret of a provider', async () => {
  const { exitCode, err } = await plat.run(oidc)
  expect([exitCode, err]).toEqual([1, expect.stringMatching(/\(idp_config_invalid\)[^]*clientSecret/)])
})

test.for([
  'idp',
  'idp add',
  'idp add saml',
  'idp add oidc --client-id platform',
  'idp add oidc --issuer https://id.example.com --client-id platform --bind-dn cn=x',
  'idp add oidc --issuer https://id.example.com --client-id platform --secret s3cret',
  'idp add oidc --issuer https://id.example.com --client-id platform --map ops',
  'idp add oidc --issuer https://id.example.com --client-id platform --map ops=King',
  'idp add ldap --url ldaps://ldap.example.com',
  'idp add ldap --url ldaps://a.example --bind-dn cn=a --user-search-base dc=a --ca-file missing.pem',
  'idp remove',
])('plat %s is wrong use: 2, nothing on standard output', async (line) => {
  const { exitCode, out, err } = await plat.run(line.split(' '))
  expect([exitCode, out]).toEqual([2, ''])
  expect(err).not.toMatch(/^$|Unexpected/)
})
