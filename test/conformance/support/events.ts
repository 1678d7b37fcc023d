import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'
import { expectStatus } from './answer.ts'
import type { Platform } from './platform.ts'

/** Event types with validators compiled from the catalog. */
export async function eventSchemas(platform: Platform): Promise<Map<string, ValidateFunction>> {
  const ajv = new Ajv2020({ strict: true, allowUnionTypes: true })
  formats.default(ajv)
  const { items } = expectStatus(await (await platform.admin).get('/api/v1/events/catalog'), 200)
  return new Map(items.map(({ type, schema }: any) => [type, ajv.compile(schema)]))
}
