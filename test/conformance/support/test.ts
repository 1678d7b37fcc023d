import { test as base } from 'vitest'
import { connect, type Options, optionsUrlVariable } from './platform.ts'

export const test = base
  .extend('options', { scope: 'file' }, readOptions)
  .extend('platform', { scope: 'file' }, async ({ options }, { onCleanup }) => {
    const platform = await connect(options)
    onCleanup(() => platform.cleanUp.disposeAsync())
    return platform
  })
  .extend('anonymous', { scope: 'file' }, ({ platform }) => platform.anonymous)
  .extend('admin', { scope: 'file' }, ({ platform }) => platform.admin)

async function readOptions(): Promise<Options> {
  const response = await fetch(process.env[optionsUrlVariable] ?? '')
  const body: any = await response.json()
  if (!response.ok) throw new Error(`The platform could not be prepared: ${body.error}`)
  return body
}
