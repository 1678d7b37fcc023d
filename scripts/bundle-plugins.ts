import { readFile } from 'node:fs/promises'
import type { Plugin } from 'esbuild'
import { type Expression, parseSync, type Statement, type VariableDeclaration } from 'oxc-parser'
import { root } from './source.ts'

/** Lambda sets credentials in the environment, so bundles leave out the other credential providers of the SDK. */
const environmentCredentials: Plugin = {
  name: 'environment-credentials',
  setup(builder) {
    const filter = /^@aws-sdk\/credential-provider-node$/
    builder.onResolve({ filter }, ({ path }) => ({ path, namespace: 'environment' }))
    builder.onLoad({ filter: /./, namespace: 'environment' }, () => ({
      contents: `export { fromEnv as defaultProvider } from '@aws-sdk/credential-provider-env'`,
      resolveDir: root,
    }))
  },
}

/** Leaves out event streams and zod's JSON schema generator, which no function uses. */
const omittedCode: Plugin = {
  name: 'unneeded',
  setup(builder) {
    builder.onResolve({ filter: /^@smithy\/core\/event-streams$/ }, ({ kind }) =>
      kind === 'dynamic-import' ? { external: true } : undefined,
    )
    builder.onResolve({ filter: /\/(?:json-schema-processors|to-json-schema)\.js$/ }, ({ path, importer }) =>
      importer.endsWith('/zod/v4/classic/schemas.js') ? { path, namespace: 'unneeded' } : undefined,
    )
    builder.onLoad({ filter: /./, namespace: 'unneeded' }, () => ({ contents: 'module.exports = {}' }))
  },
}

/** Leaves out the OpenAPI generator and zod's locales: functions only read routes. */
const plainRoutes: Plugin = {
  name: 'plain-routes',
  setup(builder) {
    builder.onResolve({ filter: /^@hono\/zod-openapi$/ }, () => ({
      path: 'create-route',
      namespace: 'plain-routes',
    }))
    builder.onLoad({ filter: /./, namespace: 'plain-routes' }, () => ({
      contents: 'export const createRoute = (route) => route',
    }))
  },
}

/**
 * Marks calls that create schemas as free of side effects, so that esbuild drops unused schemas. Caches the marked
 * files.
 */
function unusedSchemas(): Plugin {
  const markedTexts = new Map<string, Promise<string>>()
  return {
    name: 'unused-schemas',
    setup(builder) {
      builder.onLoad({ filter: /\/packages\/(?:contract|core)\/src\/[\w/-]+\.ts$/ }, async ({ path }) => {
        const text = markedTexts.get(path) ?? readFile(path, 'utf8').then((source) => markCalls(path, source))
        markedTexts.set(path, text)
        return { contents: await text, loader: 'ts' }
      })
    },
  }
}

function markCalls(path: string, text: string): string {
  const calls = parseSync(path, text)
    .program.body.flatMap(declarationsOf)
    .flatMap(({ init }) => (init?.type === 'CallExpression' && createsSchema(init) ? [init] : []))
  const edits = calls.flatMap(({ start, end }) => [
    { at: start, mark: '/* @__PURE__ */ (() => ' },
    { at: end, mark: ')()' },
  ])
  return edits.reduceRight((code, { at, mark }) => code.slice(0, at) + mark + code.slice(at), text)
}

function declarationsOf(statement: Statement): VariableDeclaration['declarations'] {
  const declaration = statement.type === 'ExportNamedDeclaration' ? statement.declaration : statement
  return declaration?.type === 'VariableDeclaration' ? declaration.declarations : []
}

/** Whether a call creates a schema, such as `z.object({…}).meta({…})`, `Cluster.extend({…})` or `createRoute({…})`. */
function createsSchema(expression: Expression): boolean {
  if (expression.type === 'CallExpression') return createsSchema(expression.callee)
  if (expression.type === 'MemberExpression') return createsSchema(expression.object)
  return expression.type === 'Identifier' && /^(?:z|createRoute|pageOf|[A-Z]\w*)$/.test(expression.name)
}

/** Evaluates modules that derive constants from the whole contract, so that bundles do not contain the contract. */
const derivedConstants: Plugin = {
  name: 'derived',
  setup(builder) {
    builder.onLoad(
      { filter: /\/packages\/core\/src\/updates\/(?:function-names|infrastructure)\.ts$/ },
      async ({ path }) => {
        const exports: Record<string, unknown> = await import(path)
        const lines = Object.entries(exports).map(([name, value]) =>
          typeof value === 'function'
            ? `export const ${name} = () => ${JSON.stringify(value())}`
            : `export const ${name} = ${JSON.stringify(value)}`,
        )
        return { contents: lines.join('\n') }
      },
    )
  },
}

/** Returns new plugins for one build, because their cache must not outlive it. */
export const plugins = (): Plugin[] => [
  environmentCredentials,
  plainRoutes,
  omittedCode,
  derivedConstants,
  unusedSchemas(),
]
