import { type AliasConfiguration, GetAliasCommand, UpdateAliasCommand } from '@aws-sdk/client-lambda'
import { isAws } from '@platform/core/aws/error-name'
import { type LambdaControl } from './lambda-control.ts'
import { cloudNameOf } from './lambda-names.ts'
import { TargetError } from './port.ts'

/** Where an alias leads: to one version, and with a share to another one. */
export interface AliasState {
  main: string
  other?: string
  /** From 0 to 1. */
  weight: number
}

/** The aliases of the functions as one try of an update has seen and left them: whoever else moves one is found out. */
export interface AliasStates {
  /** Where a function's alias leads. One call where it was not seen yet. */
  seen: (name: string) => Promise<AliasState>
  /** The same as it is now, whatever was seen. One call. */
  now: (name: string) => Promise<AliasState>
  /** Moves it, unless somebody else has. Throws a final `TargetFailure`. One call at most where it was seen. */
  move: (name: string, to: AliasState) => Promise<void>
}

export function readAliases(control: LambdaControl): AliasStates {
  const { client, alias: Name } = control
  const known = new Map<string, AliasConfiguration>()
  const read = (name: string) =>
    client.send(new GetAliasCommand({ FunctionName: cloudNameOf(control.prefix, name), Name }))
  const asSeen = async (name: string): Promise<AliasConfiguration> => {
    const alias = known.get(name) ?? (await read(name))
    known.set(name, alias)
    return alias
  }
  return {
    seen: async (name) => placeOf(await asSeen(name)),
    now: async (name) => {
      const alias = await read(name)
      if (!known.has(name)) known.set(name, alias)
      return placeOf(alias)
    },
    async move(name, to) {
      const { RevisionId, ...alias } = await asSeen(name)
      if (isAt(placeOf(alias), to)) return
      const FunctionName = cloudNameOf(control.prefix, name)
      const RoutingConfig = { AdditionalVersionWeights: to.other === undefined ? {} : { [to.other]: to.weight } }
      const input = { FunctionName, Name, FunctionVersion: to.main, RoutingConfig, RevisionId }
      try {
        known.set(name, await client.send(new UpdateAliasCommand(input)))
      } catch (error) {
        if (!isAws(error, 'PreconditionFailedException')) throw error
        const found = await read(name)
        // The answer to the first try of this very call was lost.
        if (!isAt(placeOf(found), to)) throw movedByOthers(`${FunctionName}:${Name}`)
        known.set(name, found)
      }
    },
  }
}

const movedByOthers = (alias: string) =>
  new TargetError(`Somebody else has changed where the alias ${alias} leads. It is left as it is.`, { isFinal: true })

function placeOf({ FunctionVersion: main = '', RoutingConfig }: AliasConfiguration): AliasState {
  const [[other, weight] = [undefined, 0]] = Object.entries(RoutingConfig?.AdditionalVersionWeights ?? {})
  return other === undefined || weight === 0 ? { main, weight: 0 } : { main, other, weight }
}

const isAt = (one: AliasState, other: AliasState): boolean =>
  one.main === other.main && one.other === other.other && one.weight === other.weight
