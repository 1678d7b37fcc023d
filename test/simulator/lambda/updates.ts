import * as z from 'zod'
import { configurationOf, newRevision } from './function.ts'
import { functionOf } from './lambda.ts'
import { named, operation } from './operation.ts'
import { replaceLatest, requireRevision, requireSettled } from './readiness.ts'
import { invalidValue } from './refusals.ts'
import { Architectures, changedSettings, settingMembers, ZipFile } from './settings.ts'
import { addVersion } from './versions.ts'

const CodeRequest = z.object({
  FunctionName: named.FunctionName,
  ImageUri: z.string().optional(),
  S3Bucket: z.string().optional(),
  S3Key: z.string().optional(),
  ZipFile: ZipFile.optional(),
  Architectures: Architectures.optional(),
  Publish: z.boolean().default(false),
  DryRun: z.boolean().default(false),
  RevisionId: z.string().optional(),
})

export const updateFunctionCode = operation(CodeRequest, async (lambda, request) => {
  const found = functionOf(lambda, request)
  const { ImageUri: imageUri, S3Bucket: s3Bucket, S3Key: s3Key, ZipFile: zipFile } = request
  const { packageType } = found.latest.code
  const code = await lambda.findCode({ packageType, imageUri, s3Bucket, s3Key, zipFile })
  requireSettled(found)
  requireRevision(found.latest, request.RevisionId)
  const { latest } = found
  const [architecture = latest.settings.architecture] = request.Architectures ?? []
  const revision = newRevision({ ...latest, code, settings: { ...latest.settings, architecture } })
  if (request.DryRun) return configurationOf(revision)
  replaceLatest(lambda, found, revision)
  return configurationOf(request.Publish ? addVersion(lambda, found, undefined) : revision)
})

const ConfigurationRequest = z.object({
  ...settingMembers,
  FunctionName: named.FunctionName,
  RevisionId: z.string().optional(),
})

export const updateFunctionConfiguration = operation(ConfigurationRequest, (lambda, request) => {
  const found = functionOf(lambda, request)
  requireSettled(found)
  requireRevision(found.latest, request.RevisionId)
  const { latest } = found
  if (latest.code.packageType === 'Image' && (request.Runtime ?? request.Handler) !== undefined) {
    throw invalidValue('An image has neither a runtime nor a handler.')
  }
  const revision = newRevision({ ...latest, settings: changedSettings(latest.settings, request) })
  replaceLatest(lambda, found, revision)
  return configurationOf(revision)
})
