import { sha256 } from '@platform/core/id'
import { functionNames } from '@platform/core/updates/function-names'
import { expect, test } from 'vitest'
import { functionsOf } from '../simulator/graph/functions.ts'
import { type Graph, ofType } from '../simulator/graph/graph.ts'
import { graphOf } from '../support/graphs.ts'
import { byText, fullGraph, inputsOf, production } from './stages.ts'
import { isLong } from '../support/long.ts'

const apiUrls = (graph: Graph) =>
  new Set(functionsOf(graph, functionNames).map(({ environment }) => environment['PLAT_API_URL']))

const certificate = 'arn:aws:acm:us-east-1:000000000000:certificate/0a1b'

const restoredGraph = () =>
  graphOf('production', {
    PLAT_DOMAIN: 'platform.example.com',
    PLAT_DOMAIN_CERTIFICATE: certificate,
    PLAT_RESTORED_TABLE: 'restored-2026',
  })

test("without a domain the API uses the gateway's address", () => {
  const [address] = apiUrls(production)
  expect(address).toMatch(/^https:\/\/[a-z0-9]+\.execute-api\.us-east-1\.amazonaws\.com$/)
  expect(production.outputs['api']).toBe(address)
  expect(ofType(production, 'aws:apigatewayv2/domainName:DomainName')).toEqual([])
})

test('a front serves the domain, and the gateway answers only to the front at a domain of its own', async () => {
  const graph = await fullGraph()
  const [domain, origin] = ['platform.example.com', 'origin.platform.example.com']
  expect([...apiUrls(graph)]).toEqual([`https://${domain}`])
  expect(graph.outputs['api']).toBe(`https://${domain}`)
  const certificates = inputsOf(graph, 'aws:acm/certificate:Certificate').map(({ domainName }) => domainName)
  expect(certificates.toSorted(byText)).toEqual([origin, domain])
  expect(inputsOf(graph, 'aws:apigatewayv2/api:Api')).toMatchObject([{ disableExecuteApiEndpoint: true }])
  expect(inputsOf(graph, 'aws:apigatewayv2/domainName:DomainName')).toMatchObject([{ domainName: origin }])
  const [{ aliases, origins, webAclId }] = inputsOf(graph, 'aws:cloudfront/distribution:Distribution')
  expect([aliases, webAclId]).toEqual([[domain], expect.stringMatching(/:wafv2:.*:global\/webacl\//)])
  const [{ domainName, customHeaders }] = origins.value
  const [{ name, value: secret }] = customHeaders
  expect([domainName, name]).toEqual([origin, 'X-Plat-Front-Secret'])
  for (const { environment } of functionsOf(graph, functionNames)) {
    expect(environment).toMatchObject({ PLAT_FRONT_REQUIRED: 'true', PLAT_FRONT_SECRET_SHA256: sha256(secret) })
    expect(JSON.stringify(environment)).not.toContain(secret)
  }
  const [stage] = inputsOf(graph, 'aws:apigatewayv2/stage:Stage')
  expect(stage.defaultRouteSettings).toMatchObject({ throttlingBurstLimit: 2500, throttlingRateLimit: 2500 })
  const [budget] = inputsOf(graph, 'aws:budgets/budget:Budget')
  expect(budget).toMatchObject({ name: 'platform-production-use1', limitAmount: '50', timeUnit: 'MONTHLY' })
})

test.runIf(isLong)(
  'a domain in Route 53 gets a certificate and records, and all functions use its address',
  async () => {
    const graph = await graphOf('dev', { PLAT_DOMAIN: 'platform.example.com' })
    expect([...apiUrls(graph)]).toEqual(['https://platform.example.com'])
    expect(graph.outputs).not.toHaveProperty('domainTarget')
    const [certificate] = ofType(graph, 'aws:acm/certificate:Certificate')
    expect(inputsOf(graph, 'aws:apigatewayv2/domainName:DomainName')).toMatchObject([
      { domainName: 'platform.example.com', domainNameConfiguration: { certificateArn: certificate?.state['arn'] } },
    ])
    const records = inputsOf(graph, 'aws:route53/record:Record').map(
      ({ type, name }) => `${String(type)} ${String(name)}`,
    )
    expect(new Set(records)).toEqual(
      new Set(['A platform.example.com', 'AAAA platform.example.com', 'CNAME _validation.platform.example.com.']),
    )
  },
)

test.runIf(isLong)('a domain with its own certificate needs no Route 53 and prints the CNAME target', async () => {
  const graph = await restoredGraph()
  expect([...apiUrls(graph)]).toEqual(['https://platform.example.com'])
  expect(inputsOf(graph, 'aws:apigatewayv2/domainName:DomainName')).toMatchObject([
    { domainNameConfiguration: { certificateArn: certificate, securityPolicy: 'TLS_1_2' } },
  ])
  expect(graph.resources.filter(({ type }) => /route53|acm|dynamic/.test(type))).toEqual([])
  expect(graph.outputs['domainTarget']).toMatch(/\.execute-api\.us-east-1\.amazonaws\.com$/)
})

test.runIf(isLong)('a restored table replaces the old one, which is retained', async () => {
  const graph = await restoredGraph()
  const tables = ofType(graph, 'aws:dynamodb/table:Table')
  expect(tables).toMatchObject([{ import: 'restored-2026', retainOnDelete: true, inputs: { name: 'restored-2026' } }])
  // Pulumi refuses to replace a protected table.
  expect(tables[0]?.protect).toBe(false)
  for (const { environment, statements } of functionsOf(graph, functionNames)) {
    expect(environment['PLAT_TABLE']).toBe('restored-2026')
    const onTables = statements.flatMap(({ Resource }) => Resource).filter((arn) => arn.includes(':dynamodb:'))
    expect(onTables.filter((arn) => !arn.includes(':table/restored-2026'))).toEqual([])
  }
  expect(ofType(production, 'aws:dynamodb/table:Table')[0]?.import).toBeUndefined()
})
