import { useQueryClient } from '@tanstack/react-query'
import { api, unwrap, type Schemas } from '../../api/client.ts'
import { Button } from '../../ui/button.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { TextField } from '../../ui/field.tsx'
import { Form, type FormValues } from '../../ui/form.tsx'
import { showToast } from '../../ui/toast.tsx'

interface CreateOrganisationProps {
  onClose: () => void
  onCreated: (organisation: Schemas['Organisation']) => void
}

export function CreateOrganisation({ onClose, onCreated }: CreateOrganisationProps) {
  const queries = useQueryClient()
  const create = async ({ name = '' }: FormValues) => {
    const organisation = await unwrap(api.POST('/api/v1/platform/organisations', { body: { name: name.trim() } }))
    showToast(`${organisation.name} was created`)
    onClose()
    onCreated(organisation)
    await queries.invalidateQueries({ queryKey: ['organisations'] })
  }
  return (
    <Dialog isOpen onClose={onClose} title="Create organisation" description="Next, add its first administrator.">
      <Form submitLabel="Create organisation" onSubmit={create} actions={<Button onClick={onClose}>Cancel</Button>}>
        <TextField name="name" label="Name" hint="Unique on the platform." maxLength={100} required />
      </Form>
    </Dialog>
  )
}
