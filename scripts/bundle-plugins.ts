import { readFile } from 'node:fs/promises'
import type { Plugin } from 'esbuild'
import { type Expression, parseSync, type Statement, type VariableDeclaration } from 'oxc-parser'
import { root } from './source.ts'

/**
 * Lambda hands credentials to a function in its environment. The SDK's own chain looks in nine places and brings the
 * clients of two more services for it: a quarter of the bundle.
 */
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

/** What is loaded for operations that stream events, and what makes JSON schemas of zod's: no function does either. */
const unneeded: Plugin = {
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

/** Functions read routes and generate no document. The package would bring its generator and all locales of zod. */
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
 * A schema that nothing uses is left out: zod's methods are calls that might do anything, as far as esbuild knows, and a
 * function would make the schemas of every file that it imports one constant of. One instance serves one build.
 */
function unusedSchemas(): Plugin {
  const marked = new Map<string, Promise<string>>()
  return {
    name: 'unused-schemas',
    setup(builder) {
      builder.onLoad({ filter: /\/packages\/(?:contract|core)\/src\/[\w/-]+\.ts$/ }, async ({ path }) => {
        const text = marked.get(path) ?? readFile(path, 'utf8').then((source) => markCalls(path, source))
        marked.set(path, text)
        return { contents: await text, loader: 'ts' }
      })
    },
  }
}

/** Says of every constant of a file that a call of a schema or an endpoint makes: what makes it does nothing else. */
function markCalls(path: string, text: string): string {
  const calls = parseSync(path, text)
    .program.body.flatMap(declarationsOf)
    .flatMap(({ init }) => (init?.type === 'CallExpression' && makesSchema(init) ? [init] : []))
  const edits = calls.flatMap(({ start, end }) => [
    { at: start, mark: '/* @__PURE__ */ (() => ' },
    { at: end, mark: ')()' },
  ])
  return edits.reduceRight((whole, { at, mark }) => whole.slice(0, at) + mark + whole.slice(at), text)
}

function declarationsOf(statement: Statement): VariableDeclaration['declarations'] {
  const declared = statement.type === 'ExportNamedDeclaration' ? statement.declaration : statement
  return declared?.type === 'VariableDeclaration' ? declared.declarations : []
}

/** `z.object({…}).meta({…})`, `Cluster.extend({…})`, `createRoute({…})`: schemas have names like types. */
function makesSchema(expression: Expression): boolean {
  if (expression.type === 'CallExpression') return makesSchema(expression.callee)
  if (expression.type === 'MemberExpression') return makesSchema(expression.object)
  return expression.type === 'Identifier' && /^(?:z|createRoute|pageOf|[A-Z]\w*)$/.test(expression.name)
}

/** Modules that say what follows from the whole contract: names, and a digest. They are worked out here, without it. */
const derived: Plugin = {
  name: 'derived',
  setup(builder) {
    builder.onLoad(
      { filter: /\/packages\/core\/src\/updates\/(?:function-names|infrastructure)\.ts$/ },
      async ({ path }) => {
        const exported: Record<string, unknown> = await import(path)
        const lines = Object.entries(exported).map(([name, value]) =>
          typeof value === 'function'
            ? `export const ${name} = () => ${JSON.stringify(value())}`
            : `export const ${name} = ${JSON.stringify(value)}`,
        )
        return { contents: lines.join('\n') }
      },
    )
  },
}

/** What bundling does to code that functions are made of; new for each build. */
export const plugins = (): Plugin[] => [environmentCredentials, plainRoutes, unneeded, derived, unusedSchemas()]
