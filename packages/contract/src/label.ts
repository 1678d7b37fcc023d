import * as z from 'zod'
import {
  isDerivedKey,
  keyRule,
  labelKeyPattern,
  labelValuePattern,
  maxSelectorLength,
  parseSelector,
  SelectorError,
  valueRule,
} from './selector.ts'

/** Maximum number of labels that can be set on a cluster. Derived labels do not count. */
export const labelLimit = 32

/** Derives a label value: replaces invalid characters with `-`, trims both ends and keeps at most 63 characters. */
export const toLabelValue = (text: string): string =>
  text
    .replaceAll(/[^A-Za-z0-9._-]/g, '-')
    .replace(/^[^A-Za-z0-9]+/, '')
    .slice(0, 63)
    .replace(/[^A-Za-z0-9]+$/, '')

const LabelKey = z
  .string()
  .max(63)
  .regex(labelKeyPattern, keyRule)
  .refine(
    (key) => !isDerivedKey(key),
    'must not begin with platform/ or facts/, because the platform sets these labels',
  )
const LabelValue = z.string().max(63).regex(labelValuePattern, valueRule)

const example = { env: 'prod', tier: 'web' }

/** Labels that a caller sets. */
export const LabelSet = z
  .record(LabelKey, LabelValue)
  .refine((labels) => Object.keys(labels).length <= labelLimit, `must have at most ${labelLimit} labels`)
  .meta({ description: `At most ${labelLimit} labels`, maxProperties: labelLimit, example })

/** A change of labels: each key is set or, with null, removed. Other labels do not change. */
export const LabelChange = z
  .record(LabelKey, LabelValue.nullable())
  .refine((change) => Object.keys(change).length <= 2 * labelLimit, `must have at most ${2 * labelLimit} keys`)
  .meta({
    description: 'Merged into the labels of the cluster: null removes a label, and other labels stay',
    maxProperties: 2 * labelLimit,
    example: { env: 'prod', legacy: null },
  })

/** Keys of labels that are removed. */
export const LabelKeys = z
  .array(LabelKey)
  .max(labelLimit)
  .meta({ example: ['legacy'] })

/** All labels of a cluster, including derived ones. */
export const Labels = z.record(z.string().max(63), z.string().max(63)).meta({
  description: 'Labels of the cluster. Keys that begin with `platform/` or `facts/` are derived and read-only',
  example: { ...example, 'platform/type': 'Hypervisor' },
})

export type Labels = Readonly<Record<string, string>>
export type LabelChange = z.infer<typeof LabelChange>

/** A label selector as text. The validation issue of an invalid selector has the position of the error. */
export const SelectorText = z
  .string()
  .superRefine((text, context) => {
    try {
      parseSelector(text)
    } catch (error) {
      if (!(error instanceof SelectorError)) throw error
      context.addIssue({ code: 'custom', message: error.message, params: { position: error.position } })
    }
  })
  .meta({
    description:
      'Label selector as in Kubernetes: `env=prod`, `env!=prod`, `tier in (web,api)`, `tier notin (web)`, `legacy` and `!legacy`, joined by commas; at most 20 requirements',
    minLength: 1,
    maxLength: maxSelectorLength,
    example: 'env=prod,!legacy',
  })
