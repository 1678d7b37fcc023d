import { AwsServiceError } from '@platform/local/emulators/http/error'
import { createAlias, deleteAlias, getAlias, listAliases, updateAlias } from './aliases.ts'
import { createFunction, deleteFunction, getFunction, getFunctionConfiguration, listFunctions } from './functions.ts'
import type { Operation } from './operation.ts'
import { listTags, tagResource, untagResource } from './tags.ts'
import { updateFunctionCode, updateFunctionConfiguration } from './updates.ts'
import { listVersions, publishVersion } from './versions.ts'

type Performed = Operation | 'invoke'

const functions = '/2015-03-31/functions'
const one = `${functions}/{FunctionName}`

const routes: readonly (readonly [method: string, path: string, status: number, performed: Performed])[] = [
  ['POST', functions, 201, createFunction],
  ['GET', functions, 200, listFunctions],
  ['GET', one, 200, getFunction],
  ['DELETE', one, 204, deleteFunction],
  ['GET', `${one}/configuration`, 200, getFunctionConfiguration],
  ['PUT', `${one}/configuration`, 200, updateFunctionConfiguration],
  ['PUT', `${one}/code`, 200, updateFunctionCode],
  ['POST', `${one}/versions`, 201, publishVersion],
  ['GET', `${one}/versions`, 200, listVersions],
  ['POST', `${one}/invocations`, 200, 'invoke'],
  ['POST', `${one}/aliases`, 201, createAlias],
  ['GET', `${one}/aliases`, 200, listAliases],
  ['GET', `${one}/aliases/{Name}`, 200, getAlias],
  ['PUT', `${one}/aliases/{Name}`, 200, updateAlias],
  ['DELETE', `${one}/aliases/{Name}`, 204, deleteAlias],
  ['GET', '/2017-03-31/tags/{Resource}', 200, listTags],
  ['POST', '/2017-03-31/tags/{Resource}', 204, tagResource],
  ['DELETE', '/2017-03-31/tags/{Resource}', 204, untagResource],
]

const table = routes.map(([method, path, status, performed]) => ({
  method,
  pattern: new RegExp(`^${path.replaceAll(/\{(\w+)\}/g, '(?<$1>[^/]+)')}/?$`),
  status,
  performed,
}))

export interface RouteMatch {
  performed: Performed
  status: number
  /** Path and query members; repeated ones are a list. */
  input: Record<string, string | string[]>
}

export function routeOf(method: string, target: string): RouteMatch {
  const { pathname, searchParams } = new URL(target, 'http://lambda')
  for (const { pattern, performed, status, ...route } of table) {
    const match = route.method === method ? pattern.exec(pathname) : null
    if (match === null) continue
    const named = Object.entries(match.groups ?? {}).map(([name, value]) => [name, decodeURIComponent(value)] as const)
    const asked = [...new Set(searchParams.keys())].map((name) => [name, valueOf(searchParams.getAll(name))] as const)
    return { performed, status, input: Object.fromEntries([...asked, ...named]) }
  }
  throw new AwsServiceError('UnknownOperationException', `${method} ${pathname} is not supported.`, 404)
}

const valueOf = (values: string[]): string | string[] => (values.length === 1 ? (values[0] ?? '') : values)
