import { Plus } from 'lucide-react'
import { useState } from 'react'
import { api, expectNoBody } from '../../api/client.ts'
import { queries } from '../../api/query.ts'
import { Button } from '../../ui/button.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { TextArea, TextField } from '../../ui/field.tsx'
import { Form } from '../../ui/form.tsx'
import { showToast } from '../../ui/toast.tsx'

/** Adds an extra entry about an event outside the platform. */
export function AddEntry() {
  const [isOpen, setIsOpen] = useState(false)
  const close = () => setIsOpen(false)
  return (
    <>
      <Button icon={Plus} onClick={() => setIsOpen(true)}>
        Add entry
      </Button>
      <Dialog
        isOpen={isOpen}
        onClose={close}
        title="Add an entry"
        description="For events outside the platform, such as an approval. Entries cannot be changed or removed."
      >
        <Form
          submitLabel="Add entry"
          actions={<Button onClick={close}>Cancel</Button>}
          onSubmit={async ({ action = '', resource = '', detail = '' }) => {
            await expectNoBody(api.POST('/api/v1/platform/audit', { body: { action, resource, detail } }))
            await queries.invalidateQueries({ queryKey: ['audit'] })
            showToast('Entry added. It appears shortly.')
            close()
          }}
        >
          <TextField name="action" label="Action" placeholder="change.approved" required maxLength={100} />
          <TextField name="resource" label="Resource" placeholder="clus_…" required maxLength={200} />
          <TextArea name="detail" label="Detail" rows={4} maxLength={2000} isOptional />
        </Form>
      </Dialog>
    </>
  )
}
