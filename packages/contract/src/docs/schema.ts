import { type ApiDocument, nameOf, resolveSchema, type Schema, typeOf, typesOf } from './document.ts'
import { type Html, html } from './html.ts'
import { line } from './prose.ts'

const formatCount = (value: number): string => value.toLocaleString('en')

function range(low: number | undefined, high: number | undefined, unit: string): string | undefined {
  // The bounds of the integer types are not limits of the field.
  const minText = low === undefined || low <= -(2 ** 31) ? undefined : formatCount(low)
  const maxText = high === undefined || high >= 2 ** 31 - 1 ? undefined : formatCount(high)
  if (minText !== undefined && maxText !== undefined) return `${minText} to ${maxText}${unit}`
  if (maxText !== undefined) return `at most ${maxText}${unit}`
  return minText === undefined ? undefined : `at least ${minText}${unit}`
}

function limits(schema: Schema): string | undefined {
  if (typeOf(schema) === 'array') return range(schema.minItems, schema.maxItems, ' items')
  if (typeOf(schema) === 'string') return range(schema.minLength, schema.maxLength, ' characters')
  return range(schema.minimum, schema.maximum, '')
}

const isNull = (schema: Schema): boolean => schema.type === 'null'

const withoutNull = (schema: Schema): Schema => ({
  ...schema.anyOf?.find((choice) => !isNull(choice)),
  ...schema,
})

function typeLabel(schema: Schema): string {
  if (schema.$ref !== undefined) return nameOf(schema.$ref)
  if (schema.anyOf) return schema.anyOf.map((choice) => typeLabel(choice)).join(' or ')
  const type = typeOf(schema)
  if (type === 'array' && schema.items) return `list of ${typeLabel(schema.items)}`
  const hasFormat = schema.format !== undefined && !/^(int|double)/.test(schema.format)
  const name = hasFormat ? `${type ?? ''} (${schema.format})` : (type ?? 'anything')
  return typesOf(schema).includes('null') ? `${name} or null` : name
}

function allowedValues(schema: Schema): Html | undefined {
  const values = schema.enum ?? schema.items?.enum ?? (schema.const === undefined ? undefined : [schema.const])
  if (!values) return undefined
  const codes = values.map((value, index) => html`${index > 0 ? ', ' : ''}<code>${String(value)}</code>`)
  return html`<p>${values.length > 1 ? 'One of ' : 'Always '}${codes}</p>`
}

const defaultValue = ({ default: value }: Schema): Html | undefined =>
  value === undefined ? undefined : html`<p>Default <code>${JSON.stringify(value)}</code></p>`

/** Renders the fields of a schema, or of the items of a list. A recursive schema is not expanded again. */
export function fields(document: ApiDocument, schema: Schema, ancestorRefs: readonly string[] = []): Html | undefined {
  const nonNull = withoutNull(schema)
  const refs = nonNull.$ref === undefined ? ancestorRefs : [...ancestorRefs, nonNull.$ref]
  if (nonNull.$ref !== undefined && ancestorRefs.includes(nonNull.$ref)) return undefined
  const { items, properties, required = [] } = resolveSchema(document, nonNull)
  if (items) return fields(document, items, refs)
  if (!properties) return undefined
  const rows = Object.entries(properties).map(
    ([name, property]) => property && row(document, name, property, required.includes(name), refs),
  )
  return html`<ul class="fields">
    ${rows}
  </ul>`
}

function nestedFields(
  document: ApiDocument,
  name: string,
  schema: Schema,
  ancestorRefs: readonly string[],
): Html | undefined {
  const nestedTable = fields(document, schema, ancestorRefs)
  return (
    nestedTable &&
    html`<details>
      <summary>Fields of ${name}</summary>
      ${nestedTable}
    </details>`
  )
}

/** Renders one field or parameter with its type, limits and description. */
export function row(
  document: ApiDocument,
  name: string,
  schema: Schema,
  isRequired: boolean,
  ancestorRefs: readonly string[] = [],
): Html {
  const shownParts = [typeLabel(schema), limits(withoutNull(schema))].filter((text) => text !== undefined).join(', ')
  const { description } = schema.$ref === undefined ? schema : resolveSchema(document, schema)
  return html`<li>
    <p>
      <code class="name">${name}</code>
      <span class="kind">${shownParts}</span> ${!isRequired && html`<span class="optional">optional</span>`}
    </p>
    ${description !== undefined && html`<p>${line(description)}</p>`}
    ${allowedValues(schema)}${defaultValue(schema)}${nestedFields(document, name, schema, ancestorRefs)}
  </li>`
}
