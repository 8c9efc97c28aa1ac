/*
 * The ceiling of the benchmark `rings`: the floor's ring behind the fewest calls that Python's C interface allows. What
 * Python code can reach through any library at all, in the same loops.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "rings_floor.h"

typedef struct {
    PyObject_HEAD
    struct floor_ring ring;
    Py_buffer memory;
} Ring;

static PyObject *new_ring(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
    Py_buffer memory;
    (void)keywords;
    if (!PyArg_ParseTuple(arguments, "w*", &memory)) return NULL;
    if (memory.len < (Py_ssize_t)FLOOR_BYTES) {
        PyBuffer_Release(&memory);
        return PyErr_Format(PyExc_ValueError, "expected %zu bytes", (size_t)FLOOR_BYTES);
    }
    Ring *self = (Ring *)type->tp_alloc(type, 0);
    if (self == NULL) {
        PyBuffer_Release(&memory);
        return NULL;
    }
    self->memory = memory;
    floor_attach(&self->ring, memory.buf);
    return (PyObject *)self;
}

static void end_ring(PyObject *self) {
    PyBuffer_Release(&((Ring *)self)->memory);
    Py_TYPE(self)->tp_free(self);
}

/* As an outcome: 0 when it was written, -1 when there is no room. */
static PyObject *put(PyObject *self, PyObject *payload) {
    struct floor_ring *ring = &((Ring *)self)->ring;
    if (!PyBytes_Check(payload)) return PyErr_Format(PyExc_TypeError, "expected bytes");
    if (!floor_put(ring, PyBytes_AS_STRING(payload), (uint64_t)PyBytes_GET_SIZE(payload))) return PyLong_FromLong(-1);
    floor_show(ring);
    return PyLong_FromLong(0);
}

static PyObject *get(PyObject *self, PyObject *none) {
    struct floor_ring *ring = &((Ring *)self)->ring;
    uint64_t length;
    (void)none;
    const unsigned char *payload = floor_get(ring, &length);
    if (payload == NULL) Py_RETURN_NONE;
    PyObject *copy = PyBytes_FromStringAndSize((const char *)payload, (Py_ssize_t)length);
    floor_release(ring);
    return copy;
}

/* How many of a list were written. */
static PyObject *put_batch(PyObject *self, PyObject *payloads) {
    struct floor_ring *ring = &((Ring *)self)->ring;
    if (!PyList_Check(payloads)) return PyErr_Format(PyExc_TypeError, "expected a list");
    Py_ssize_t count = 0, length = PyList_GET_SIZE(payloads);
    for (; count < length; count++) {
        PyObject *payload = PyList_GET_ITEM(payloads, count);
        if (!PyBytes_Check(payload)) return PyErr_Format(PyExc_TypeError, "expected bytes");
        if (!floor_put(ring, PyBytes_AS_STRING(payload), (uint64_t)PyBytes_GET_SIZE(payload))) break;
    }
    floor_show(ring);
    return PyLong_FromSsize_t(count);
}

/* At most so many payloads, end to end. */
static PyObject *get_batch(PyObject *self, PyObject *limit) {
    struct floor_ring *ring = &((Ring *)self)->ring;
    static char scratch[1 << 18];
    long left = PyLong_AsLong(limit);
    uint64_t length, filled = 0;
    const unsigned char *payload;
    while (left-- > 0 && filled < sizeof scratch - (1 << 14) && (payload = floor_get(ring, &length)) != NULL) {
        memcpy(scratch + filled, payload, length);
        filled += length;
    }
    floor_release(ring);
    return PyBytes_FromStringAndSize(scratch, (Py_ssize_t)filled);
}

static PyMethodDef methods[] = {
    {"put", put, METH_O, NULL},
    {"get", get, METH_NOARGS, NULL},
    {"put_batch", put_batch, METH_O, NULL},
    {"get_batch", get_batch, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

static PyTypeObject ring_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "rings_extension.Ring",
    .tp_basicsize = sizeof(Ring),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = new_ring,
    .tp_dealloc = end_ring,
    .tp_methods = methods,
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, .m_name = "rings_extension", .m_size = -1};

PyMODINIT_FUNC PyInit_rings_extension(void) {
    PyObject *made = PyModule_Create(&module);
    if (made == NULL || PyType_Ready(&ring_type) < 0) return NULL;
    Py_INCREF(&ring_type);
    if (PyModule_AddObject(made, "Ring", (PyObject *)&ring_type) < 0) return NULL;
    return made;
}
