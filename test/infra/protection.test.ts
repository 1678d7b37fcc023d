import { createTableInput } from '@platform/core/db/schema'
import { expect, test } from 'vitest'
import { ofType } from '../simulator/graph/graph.ts'
import { byText, deployedFunctions, dev, production } from './stages.ts'

const tableOf = (graph: typeof dev) => ofType(graph, 'aws:dynamodb/table:Table')[0]!

test('production is protected from removal and its data is retained', () => {
  expect(production.app).toMatchObject({ protect: true, removal: 'retain' })
  expect(tableOf(production).inputs).toMatchObject({ deletionProtectionEnabled: true })
  expect(tableOf(production)).toMatchObject({ protect: true, retainOnDelete: true })
  for (const secret of ofType(production, 'aws:secretsmanager/secret:Secret')) {
    expect({ protect: secret.protect, retain: secret.retainOnDelete }).toEqual({ protect: true, retain: true })
  }
})

test('other stages are removed completely', () => {
  expect(dev.app).toMatchObject({ protect: false, removal: 'remove' })
  expect(tableOf(dev)).toMatchObject({ protect: false, inputs: { deletionProtectionEnabled: false } })
  const windows = ofType(dev, 'aws:secretsmanager/secret:Secret').map(({ inputs }) => inputs['recoveryWindowInDays'])
  expect(new Set(windows)).toEqual(new Set([0]))
})

test.each([dev, production])(
  "the table has the platform's schema, on-demand capacity and point-in-time recovery",
  (graph) => {
    const { inputs } = tableOf(graph) as any
    const expected = createTableInput('any')
    expect(inputs.attributes.map(({ name }: any) => name).toSorted(byText)).toEqual(
      expected.AttributeDefinitions!.map(({ AttributeName }) => AttributeName).toSorted(byText),
    )
    expect([inputs.hashKey, inputs.rangeKey]).toEqual(expected.KeySchema!.map(({ AttributeName }) => AttributeName))
    const indexes = inputs.globalSecondaryIndexes.map((index: any) => [
      index.name,
      index.hashKey,
      index.rangeKey,
      index.projectionType,
    ])
    expect(indexes.toSorted(byText)).toEqual(
      expected
        .GlobalSecondaryIndexes!.map((index) => [
          index.IndexName,
          ...index.KeySchema!.map(({ AttributeName }) => AttributeName),
          index.Projection?.ProjectionType,
        ])
        .toSorted(byText),
    )
    expect(inputs).toMatchObject({
      billingMode: 'PAY_PER_REQUEST',
      pointInTimeRecovery: { enabled: true },
      ttl: { attributeName: 'ttl', enabled: true },
    })
  },
)

const days = (graph: typeof dev) =>
  ofType(graph, 'aws:cloudwatch/logGroup:LogGroup').map(({ inputs }) => inputs['retentionInDays'])

test('logs are retained for a year in production and for a week elsewhere', () => {
  expect(new Set(days(production))).toEqual(new Set([365]))
  expect(new Set(days(dev))).toEqual(new Set([7]))
})

test.each(deployedFunctions)(
  "$name fits Lambda's limits for names, environment and timeout",
  ({ functionName, environment, timeoutSeconds }) => {
    expect(functionName.length).toBeLessThanOrEqual(64)
    expect(Buffer.byteLength(JSON.stringify(environment))).toBeLessThan(4096)
    expect(timeoutSeconds).toBeLessThanOrEqual(900)
  },
)

test('functions run on Node.js 24 and arm64 behind an alias, with JSON logs', () => {
  const functions = ofType(production, 'aws:lambda/function:Function').map(({ inputs }) => inputs)
  for (const each of functions) {
    expect(each).toMatchObject({
      runtime: 'nodejs24.x',
      architectures: ['arm64'],
      publish: true,
      loggingConfig: { logFormat: 'JSON' },
    })
  }
  const aliasedNames = ofType(production, 'aws:lambda/alias:Alias').map(({ inputs }) => inputs['functionName'])
  expect(aliasedNames.toSorted(byText)).toEqual(functions.map(({ name }) => name).toSorted(byText))
})

test('no environment or output contains a secret', () => {
  const values = [...deployedFunctions.map(({ environment }) => environment), production.outputs]
    .flatMap(Object.values)
    .map(String)
  const secret = /PRIVATE KEY|^plat_|^admin\.|^whsec_/
  expect(values.filter((value) => secret.test(value))).toEqual([])
})
