import { type AliasConfiguration, GetAliasCommand, UpdateAliasCommand } from '@aws-sdk/client-lambda'
import { isAws } from '@platform/core/aws/sdk'
import { type AliasControl, lambdaNameOf } from './lambda-functions.ts'
import { TargetError } from './port.ts'

/** An alias refers to one version, and optionally to another one with a share of the traffic. */
export interface AliasState {
  main: string
  other?: string
  weight: number
}

/** The functions' aliases as one update attempt has read and written them, to detect changes by others. */
export interface AliasStates {
  readCached: (name: string) => Promise<AliasState>
  /** Reads the alias regardless of the cache. */
  readFresh: (name: string) => Promise<AliasState>
  /** Moves an alias. Throws a final `TargetError` if others have changed it. */
  move: (name: string, to: AliasState) => Promise<void>
}

export function createAliasStates(control: AliasControl): AliasStates {
  const { client, alias: Name } = control
  const cache = new Map<string, AliasConfiguration>()
  const read = (name: string) =>
    client.send(new GetAliasCommand({ FunctionName: lambdaNameOf(control.prefix, name), Name }))
  const readCached = async (name: string): Promise<AliasConfiguration> => {
    const alias = cache.get(name) ?? (await read(name))
    cache.set(name, alias)
    return alias
  }
  return {
    readCached: async (name) => stateOf(await readCached(name)),
    readFresh: async (name) => {
      const alias = await read(name)
      if (!cache.has(name)) cache.set(name, alias)
      return stateOf(alias)
    },
    async move(name, to) {
      const { RevisionId, ...alias } = await readCached(name)
      if (isEqual(stateOf(alias), to)) return
      const FunctionName = lambdaNameOf(control.prefix, name)
      const RoutingConfig = { AdditionalVersionWeights: to.other === undefined ? {} : { [to.other]: to.weight } }
      const input = { FunctionName, Name, FunctionVersion: to.main, RoutingConfig, RevisionId }
      try {
        cache.set(name, await client.send(new UpdateAliasCommand(input)))
      } catch (error) {
        if (!isAws(error, 'PreconditionFailedException')) throw error
        const currentState = await read(name)
        // If the alias already has the requested state, only the response to an earlier try was lost.
        if (!isEqual(stateOf(currentState), to)) throw movedByOthersError(`${FunctionName}:${Name}`)
        cache.set(name, currentState)
      }
    },
  }
}

const movedByOthersError = (alias: string) =>
  new TargetError(`The alias ${alias} was changed outside of this update. It is left unchanged.`, { isFinal: true })

function stateOf({ FunctionVersion: main = '', RoutingConfig }: AliasConfiguration): AliasState {
  const [[other, weight] = [undefined, 0]] = Object.entries(RoutingConfig?.AdditionalVersionWeights ?? {})
  return other === undefined || weight === 0 ? { main, weight: 0 } : { main, other, weight }
}

const isEqual = (a: AliasState, b: AliasState): boolean =>
  a.main === b.main && a.other === b.other && a.weight === b.weight
