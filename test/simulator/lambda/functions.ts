import * as z from 'zod'
import { addressOf, arnOf, latestVersion } from './address.ts'
import { configurationOf, type LambdaFunction, listedOf, newRevision, type Revision } from './function.ts'
import { functionOf, type Lambda, revisionOf } from './lambda.ts'
import { named, operation, page, pageMembers } from './operation.ts'
import { activateLater } from './readiness.ts'
import { conflict, invalidValue } from './refusals.ts'
import { Architectures, changedSettings, defaultSettings, settingMembers, ZipFile } from './settings.ts'
import { addVersion, removeVersion } from './versions.ts'

const CodeMembers = z.object({
  ImageUri: z.string().optional(),
  S3Bucket: z.string().optional(),
  S3Key: z.string().optional(),
  ZipFile: ZipFile.optional(),
})

const CreateRequest = z.object({
  ...settingMembers,
  ...named,
  Role: settingMembers.Role.unwrap(),
  Code: CodeMembers,
  PackageType: z.enum(['Image', 'Zip']).default('Zip'),
  Architectures: Architectures.default(['x86_64']),
  Publish: z.boolean().default(false),
  Tags: z.record(z.string(), z.string()).default({}),
})

export const createFunction = operation(CreateRequest, async (lambda, request) => {
  const { FunctionName, Code, PackageType, Role, Tags: tags } = request
  const { name, qualifier } = addressOf(FunctionName)
  if (qualifier !== undefined) throw invalidValue('A function is created by its name alone.')
  requireHandler(request)
  requireFree(lambda, name)
  const { ImageUri: imageUri, S3Bucket: s3Bucket, S3Key: s3Key, ZipFile: zipFile } = Code
  const code = await lambda.findCode({ packageType: PackageType, imageUri, s3Bucket, s3Key, zipFile })
  requireFree(lambda, name)
  const settings = changedSettings({ ...defaultSettings, Role, architecture: request.Architectures[0] }, request)
  const latest = newRevision({ functionName: name, version: latestVersion, settings, code, state: 'Pending' })
  latest.stateReason = { code: 'Creating', text: 'The function is being prepared.' }
  const made = { name, tags, latest, served: latest, versions: new Map(), aliases: new Map(), versionsMade: 0 }
  lambda.functions.set(name, made)
  activateLater(lambda, latest)
  return configurationOf(request.Publish ? addVersion(lambda, made, undefined) : latest)
})

function requireHandler({ PackageType, Runtime, Handler }: z.infer<typeof CreateRequest>): void {
  if (PackageType === 'Image' && (Runtime ?? Handler) !== undefined) {
    throw invalidValue('An image has neither a runtime nor a handler.')
  }
  if (PackageType === 'Zip' && (!Runtime?.startsWith('nodejs') || !Handler?.includes('.'))) {
    throw invalidValue('Only functions of Node.js can be made here, with a handler <file>.<export>.')
  }
}

function requireFree({ functions }: Lambda, name: string): void {
  if (functions.has(name)) throw conflict(`There is a function ${name} already.`)
}

export const getFunction = operation(z.object(named), (lambda, request) => {
  const found = functionOf(lambda, request)
  const revision = revisionOf(lambda, request)
  return { Configuration: configurationOf(revision), Code: revision.code.location, Tags: found.tags }
})

export const getFunctionConfiguration = operation(z.object(named), (lambda, request) =>
  configurationOf(revisionOf(lambda, request)),
)

export const deleteFunction = operation(z.object(named), async (lambda, request) => {
  const found = functionOf(lambda, request)
  const { qualifier } = addressOf(request.FunctionName, request.Qualifier)
  if (qualifier !== undefined) await removeVersion(lambda, found, qualifier)
  else await removeFunction(lambda, found)
  return {}
})

async function removeFunction({ functions, fleet }: Lambda, found: LambdaFunction): Promise<void> {
  functions.delete(found.name)
  const revisions = [found.latest, found.served, ...found.versions.values()]
  await Promise.all(revisions.map((revision) => fleet.retire(revision)))
}

const ListRequest = z.object({ ...pageMembers, FunctionVersion: z.literal('ALL').optional() })

export const listFunctions = operation(ListRequest, (lambda, request) => {
  const functions = [...lambda.functions.values()]
  const revisions = functions.map(({ latest }) => latest)
  if (request.FunctionVersion === 'ALL') for (const { versions } of functions) revisions.push(...versions.values())
  const sorted = revisions.toSorted((one, other) => (placeOf(one) < placeOf(other) ? -1 : 1))
  const { items, ...next } = page(sorted, placeOf, request)
  return { Functions: items.map(listedOf), ...next }
})

const placeOf = ({ functionName, version }: Revision): string => arnOf(functionName, version)
