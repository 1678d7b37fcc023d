import { useQuery } from '@tanstack/react-query'
import { SelectField } from '../../ui/field.tsx'
import { sitesQuery } from './cluster-queries.ts'

interface SiteFieldProps {
  /** The id of a site; '' for none. */
  value: string
  onChange: (siteId: string) => void
}

export function SiteField({ value, onChange }: SiteFieldProps) {
  const { data: sites = [] } = useQuery(sitesQuery)
  const options = [{ value: '', label: 'No site' }, ...sites.map(({ id, name }) => ({ value: id, label: name }))]
  return <SelectField name="siteId" label="Site" isOptional value={value} options={options} onChange={onChange} />
}
