"""Typed classes of the resources of IBM Cloud that a fleet is made of.

One module for each kind: ``vpc``, ``containers``, ``access`` and ``storage``. Each
class takes the arguments of IBM-Cloud/terraform-provider-ibm 2.5.0 under Python names;
data classes stand for nested objects. Arguments that a fleet must never set are left
out: the implicit ``<type>_id``, deprecated ones, and ``access_tags``, which must exist
in the account beforehand.

``APPLY_ONCE`` follows the provider's ``flex.ApplyOnce``, but for ``wait_till`` and
``import_on_create``: they say how a creation runs and describe nothing that lasts.
"""
