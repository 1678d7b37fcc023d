export default {
  fetch: { input: './openapi.json', output: { target: './orval/fetch.ts', client: 'fetch' } },
  zod: { input: './openapi.json', output: { target: './orval/zod.ts', client: 'zod' } },
}
