import { tableIndexes, ttlAttribute } from '../packages/core/src/db/schema.ts'
import { isProduction } from './stage.ts'

const names = ['pk', 'sk', ...Object.values(tableIndexes).flat()]

/** The one table: paid per request, restorable to any second of the last 35 days. */
export const table = new sst.aws.Dynamo('Table', {
  fields: Object.fromEntries(names.map((name) => [name, 'string' as const])),
  primaryIndex: { hashKey: 'pk', rangeKey: 'sk' },
  globalIndexes: Object.fromEntries(
    Object.entries(tableIndexes).map(([name, [hashKey, rangeKey]]) => [
      name,
      { hashKey, rangeKey, projection: 'keys-only' as const },
    ]),
  ),
  ttl: ttlAttribute,
  deletionProtection: isProduction,
})
